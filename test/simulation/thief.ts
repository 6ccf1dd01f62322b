/** A stranger who guesses the key of a purchase, and asks for the same from another address. */
import type { Run } from './run-context.ts'
import type { Ask } from './world/service.ts'

const TRIES = 12
const BETWEEN_MS = 15_000

/** @param paid resolves when the buyer has paid, which is the best time to come. */
export async function guessKey(
  run: Run,
  who: string,
  { ask, paid, afterwards }: { ask: Ask; paid: Promise<void>; afterwards: () => void },
): Promise<void> {
  const { random, sleep } = run.world.scheduler
  let isPaid = false
  for (let i = 0; i < TRIES; i++) {
    const pause = sleep(random.next() * BETWEEN_MS)
    if (isPaid) await pause
    else
      await Promise.race([
        pause,
        paid.then(() => {
          isPaid = true
        }),
      ])
    const answer = await run.ask(`${who} thief`, { ...ask, from: '198.18.0.66' })
    afterwards()
    // The answer of an extension has no token, so a repeat of it gives nobody anything.
    if (answer?.status === 200 && !answer.text.includes('"extended":true')) {
      run.ledger.break(
        'nothing for nothing',
        `a stranger with the key of ${who} was handed ${answer.text}`,
      )
    }
  }
}
