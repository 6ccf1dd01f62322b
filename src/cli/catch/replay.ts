/** `mayfly catch replay NAME [ID] --to URL`: sends stored webhooks to a receiver again. */
import type { CatchClient, CatchEvent } from '../../client/index.ts'
import { messageOf } from '../../lib/errors.ts'
import { reasonOf } from '../../lib/reason.ts'
import { type Cli, client } from '../cli.ts'
import { NEEDED } from '../declare.ts'
import { CliError, EXIT, misuse } from '../exit.ts'
import { harmless } from '../text.ts'
import { failedEvents, strikeOut } from '../vault/listening.ts'
import { loadCatch } from '../vault/saved.ts'
import { eventOf, findEvent } from './events.ts'
import { forward, isAccepted, outcomeOf, receiverOf } from './forward.ts'

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
    const isTaken = await sendAgain(cli, await findEvent(inbox, which), to)
    return isTaken ? EXIT.ok : EXIT.failed
  },
})

/** Sends an event, and says whether the receiver took it. @throws CliError if it cannot be reached. */
async function sendAgain(cli: Cli, event: CatchEvent, to: URL): Promise<boolean> {
  const sent = await forward(event, { to, onSent: () => undefined }).catch((error: unknown) => {
    const why = reasonOf(error) ?? messageOf(error)
    throw new CliError(`${to.href} cannot be reached: ${why}.`, EXIT.later)
  })
  const { id, sequence } = event
  const { status, durationMs, error } = sent
  const isTaken = isAccepted(sent)
  const answer = isTaken ? undefined : sent.answer
  cli.answer(
    { id, sequence, status, durationMs, error, answer },
    `Webhook ${sequence}: ${harmless(outcomeOf(sent))}.\n`,
  )
  if (!isTaken) {
    const says = answer === undefined ? '' : ` It says: ${harmless(answer)}`
    const why = status ?? error ?? 'no answer came'
    cli.warn(`Webhook ${sequence}: ${to.href} did not accept it: ${why}.${says}`)
  }
  return isTaken
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
    const event = await eventOf(inbox, String(sequence))
    if (event === null) cli.warn(`Webhook ${sequence} was deleted, so it is struck out.`)
    if (event === null || (await sendAgain(cli, event, to))) strikeOut(cli, publicId, sequence)
  }
  const left = failedEvents(cli, publicId).length
  if (left === 0) return EXIT.ok
  cli.warn(`${to.href} did not accept ${left} of ${sequences.length}.`)
  return EXIT.failed
}
