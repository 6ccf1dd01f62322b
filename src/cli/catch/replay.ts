/** `mayfly catch replay NAME [ID] --to URL`: sends stored webhooks to a receiver again. */
import type { CatchEvent } from '../../client/index.ts'
import { messageOf } from '../../lib/errors.ts'
import { reasonOf } from '../../lib/reason.ts'
import { type Cli, client } from '../cli.ts'
import { NEEDED } from '../declare.ts'
import { CliError, EXIT, misuse } from '../exit.ts'
import { receiverOf } from '../options.ts'
import { failedEvents, strikeOut } from '../vault/listening.ts'
import { loadCatch } from '../vault/saved.ts'
import { eventOf, findEvent } from './events.ts'
import { forward, isAccepted, showForwarded } from './forward.ts'

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
Each webhook that the receiver takes (a status below 400) has failed no more, and neither has one that was deleted. The
others stay for the next time.
`,
  async run(cli, { name, event: which, to: address, failed = false }) {
    const to = receiverOf(address)
    const { inbox, capability } = loadCatch(cli, name)
    if ((which === undefined) !== failed) {
      throw misuse('Name one webhook, or all that have failed by --failed.')
    }
    const { publicId } = capability
    const named = which === undefined ? null : await findEvent(inbox, which)
    const sequences = named === null ? failedEvents(cli, publicId) : [named.sequence]
    if (sequences.length === 0) cli.note(`Nothing of ${name} has failed.`)
    let refused = 0
    for (const sequence of sequences) {
      cli.signal.throwIfAborted()
      const event = named ?? (await eventOf(inbox, String(sequence)))
      if (event === null) cli.warn(`Webhook ${sequence} was deleted, so it is struck out.`)
      if (event === null || (await sendAgain(cli, event, to))) strikeOut(cli, publicId, sequence)
      else refused++
    }
    if (refused === 0) return EXIT.ok
    cli.warn(`${to.href} did not accept ${refused} of ${sequences.length}.`)
    return EXIT.failed
  },
})

/** Sends an event once, shows what came of it, and says whether it was taken. @throws CliError if the receiver cannot be reached. */
async function sendAgain(cli: Cli, event: CatchEvent, to: URL): Promise<boolean> {
  const sent = await forward(event, { to, onSent: () => undefined }).catch((error: unknown) => {
    const why = reasonOf(error) ?? messageOf(error)
    throw new CliError(`${to.href} cannot be reached: ${why}.`, EXIT.later)
  })
  showForwarded(cli, event, { ...sent, tries: 1 })
  return isAccepted(sent)
}
