/** Owners who extend what they have bought, at once and again, and some who destroy it meanwhile. */
import { type Bought, buy, FLOWS } from './buyer.ts'
import type { Run } from './run-context.ts'

/** To be begun when it was bought. A part of the owners extends nothing. */
export async function extendStory(run: Run, who: string, held: Bought): Promise<void> {
  const { random, sleep } = run.world.scheduler
  run.ledger.sold.set(held.publicId, String(held.resource.expiresAt))
  const withinMs = random.pick([0, 6_000])
  const buyers = Array.from({ length: random.pick(run.weather.extensions) }, async (_, at) => {
    await sleep(random.next() * withinMs)
    const bought = await buy(run, `${who} extension ${at}`, {
      order: { product: held.product, extends: held },
      flow: random.pick(FLOWS.filter((each) => !each.startsWith('one-url'))),
    })
    const isNew = bought !== null && bought.publicId !== held.publicId
    // Who extends what a restored backup does not know gets a new one.
    if (isNew && run.ledger.restores === 0 && !run.ledger.destroyed.has(held.publicId)) {
      run.ledger.break('extended once', `${who} got a new one, although ${held.publicId} is there`)
    }
  })
  await Promise.all(buyers)
}

/** What is destroyed while its extension is paid for is sold anew. */
export async function destroyStory(run: Run, who: string, held: Bought): Promise<void> {
  const { random, sleep } = run.world.scheduler
  const extending = extendStory(run, who, held)
  await sleep(random.next() * 10_000)
  run.ledger.destroyed.add(held.publicId)
  await run.ask(`${who} destroys`, {
    method: 'DELETE',
    target: `/api/${held.product}/${held.publicId}`,
    headers: { authorization: `Bearer ${held.resource.ownerToken}` },
  })
  await extending
}
