/** `mayfly catch replay NAME [ID] --to URL`: sends stored webhooks to a receiver again. */
import { type CatchClient, type CatchEvent, MayflyError } from '../../client/index.ts'
import { messageOf } from '../../lib/errors.ts'
import { reasonOf } from '../../lib/reason.ts'
import { type Cli, client } from '../cli.ts'
import { NEEDED } from '../declare.ts'
import { CliError, EXIT, misuse } from '../exit.ts'
import { harmless } from '../text.ts'
import { failedEvents, strikeOut } from '../vault/listening.ts'
import { loadCatch } from '../vault/saved.ts'
import { findEvent } from './events.ts'
import { type Forwarded, forward, isAccepted, outcomeOf, receiverOf } from './forward.ts'

export const addCatchReplay = client({
  command: 'replay',
  says: 'send a stored webhook to a receiver again, or all that have failed',
  takes: {
    '<name>': 'the inbox',
    '[event]': 'its id or sequence number',
    '--to <url>': ['the receiver', String, NEEDED],
    '--failed': 'all that `catch listen --forward` could not deliver, oldest first',
  },
  examples: [
    'mayfly catch replay hooks 7 --to http://localhost:3000/hook',
    'mayfly catch replay hooks --failed --to http://localhost:3000/hook',
  ],
  notes: `
With --failed, each webhook that the receiver takes (a status below 400) is struck out, and so is one that was
deleted. The others stay for the next time.
`,
  async run(cli, { name, event: which, to: address, failed = false }) {
    const to = receiverOf(address)
    const { inbox, capability } = loadCatch(cli, name)
    if ((which === undefined) !== failed) {
      throw misuse('Name one webhook, or all that have failed by --failed.')
    }
    if (which === undefined) {
      return replayFailed(cli, inbox, { name, to, publicId: capability.publicId })
    }
    const event = await findEvent(inbox, which)
    const answer = await sendAgain(event, to)
    show(cli, event, answer)
    if (isAccepted(answer)) return EXIT.ok
    noteRefusal(cli, `${to.href} did not accept it`, answer)
    return EXIT.failed
  },
})

/** @throws CliError if the receiver cannot be reached. */
function sendAgain(event: CatchEvent, to: URL): Promise<Forwarded> {
  return forward(event, { to, onSent: () => undefined }).catch((error: unknown) => {
    const why = reasonOf(error) ?? messageOf(error)
    throw new CliError(`${to.href} cannot be reached: ${why}.`, EXIT.later)
  })
}

type Replaying = { name: string; to: URL; publicId: string }

/** Sends each once, and goes on after one that fails again. */
async function replayFailed(
  cli: Cli,
  inbox: CatchClient,
  { name, to, publicId }: Replaying,
): Promise<number> {
  const sequences = failedEvents(cli, publicId)
  if (sequences.length === 0) {
    cli.note(`Nothing of ${name} has failed.`)
    return EXIT.ok
  }
  for (const sequence of sequences) {
    cli.signal.throwIfAborted()
    const event = await findIfThere(inbox, sequence)
    if (event === null) {
      cli.warn(`Webhook ${sequence} was deleted, so it is struck out.`)
      strikeOut(cli, publicId, sequence)
      continue
    }
    const answer = await sendAgain(event, to)
    if (isAccepted(answer)) strikeOut(cli, publicId, sequence)
    show(cli, event, answer)
    if (!isAccepted(answer)) noteRefusal(cli, `Webhook ${sequence} is not accepted`, answer)
  }
  const left = failedEvents(cli, publicId).length
  if (left === 0) return EXIT.ok
  cli.warn(`${to.href} did not accept ${left} of ${sequences.length}.`)
  return EXIT.failed
}

async function findIfThere(inbox: CatchClient, sequence: number): Promise<CatchEvent | null> {
  try {
    return await findEvent(inbox, String(sequence))
  } catch (error) {
    // The inbox itself is gone, or the service is: that is another failure.
    if (error instanceof MayflyError) throw error
    if (error instanceof CliError && error.code === EXIT.gone) return null
    throw error
  }
}

function show(cli: Cli, { id, sequence }: CatchEvent, answer: Forwarded): void {
  const { status, durationMs, error } = answer
  const said = isAccepted(answer) ? undefined : answer.answer
  cli.answer(
    { id, sequence, status, durationMs, error, answer: said },
    `Webhook ${sequence}: ${harmless(outcomeOf(answer))}.\n`,
  )
}

function noteRefusal(cli: Cli, what: string, { status, error, answer }: Forwarded): void {
  const says = answer === undefined ? '' : ` It says: ${harmless(answer)}`
  cli.warn(`${what}: ${status ?? error ?? 'no answer came'}.${says}`)
}
