/** `mayfly catch replay NAME ID --to URL`: sends one stored webhook to a receiver again. */
import type { Command } from 'commander'
import { messageOf } from '../lib/errors.ts'
import { findEvent } from './catch-events.ts'
import { outcomeOf } from './catch-listen.ts'
import { client } from './cli.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { forward, isAccepted, receiverOf } from './forward.ts'
import { loadCatch } from './saved.ts'
import { harmless } from './text.ts'

export function addCatchReplay(parent: Command): void {
  parent
    .command('replay')
    .description('send a stored webhook to a receiver again')
    .argument('<name>', 'the inbox')
    .argument('<event>', 'its id or sequence number')
    .requiredOption('--to <url>', 'the receiver')
    .addHelpText('after', examples('mayfly catch replay hooks 7 --to http://localhost:3000/hook'))
    .action(
      client<{ to: string }, [name: string, event: string]>(async (cli, options, [name, which]) => {
        const to = receiverOf(options.to)
        const { capability, baseUrl } = loadCatch(cli, name)
        const event = await findEvent(cli.mayfly(baseUrl).catch(capability), which)
        const answer = await forward(event, { to, onSent: () => undefined }).catch(
          (error: unknown) => {
            const why = messageOf(error)
            throw new CliError(`${to.href} cannot be reached: ${why}.`, EXIT.unreachable)
          },
        )
        const { status, durationMs, error } = answer
        const { id, sequence } = event
        const said = isAccepted(answer) ? undefined : answer.answer
        cli.answer(
          { id, sequence, status, durationMs, error, answer: said },
          `${outcomeOf(answer)}.\n`.replace(/^./, (letter) => letter.toUpperCase()),
        )
        if (isAccepted(answer)) return EXIT.ok
        cli.note(
          `${to.href} did not accept it: ${status ?? error ?? 'no answer came'}.${said === undefined ? '' : ` It says: ${harmless(said)}`}`,
        )
        return EXIT.failed
      }),
    )
}
