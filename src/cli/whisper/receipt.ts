/** `mayfly whisper receipt` and `mayfly whisper destroy`: for whoever sent a whisper with a receipt. */
import type { Command } from 'commander'
import type { WhisperReceipt } from '../../client/index.ts'
import { confirmDestroying } from '../ask.ts'
import { type Cli, client } from '../cli.ts'
import { examples } from '../examples.ts'
import { EXIT } from '../exit.ts'
import { away, columns } from '../text.ts'
import { loadReceipt } from '../vault/saved.ts'

export function addWhisperReceipt(parent: Command): void {
  parent
    .command('receipt')
    .description('show when a whisper was read, and how many reads are left')
    .argument('<name>', 'a whisper that was sent with --receipt')
    .addHelpText('after', examples('mayfly whisper receipt contract'))
    .action(
      client(async (cli, _options, [name]) => {
        const { baseUrl, ...holder } = loadReceipt(cli, name)
        showReceipt(cli, await cli.mayfly(baseUrl).whisperReceipt(holder).status())
        return EXIT.ok
      }),
    )
}

export function addWhisperDestroy(parent: Command): void {
  parent
    .command('destroy')
    .description('delete the encrypted bytes of a whisper now, so that nobody can read it any more')
    .argument('<name>', 'a whisper that was sent with --receipt')
    .option('--yes', 'do not ask for confirmation; this cannot be undone')
    .addHelpText('after', examples('mayfly whisper destroy contract --yes'))
    .action(
      client<{ yes?: true }>(async (cli, { yes }, [name]) => {
        const { baseUrl, ...holder } = loadReceipt(cli, name)
        if (!yes) await confirmDestroying(cli, name, `${name} and the reads that are left`)
        await cli.mayfly(baseUrl).whisperReceipt(holder).destroy()
        cli.answer(
          { name, destroyed: true },
          `${name} is destroyed. For a day, this still shows when it was read: mayfly whisper receipt ${name}\n`,
        )
        return EXIT.ok
      }),
    )
}

/** What each state of a switch means for its owner. */
const SWITCHES: Record<NonNullable<WhisperReceipt['switch']>['state'], string> = {
  waiting: 'the next ping of its monitor arms it; without one it never opens',
  armed: 'it opens when the pings stop',
  open: 'whoever has the code can read it',
  dead: 'it never opens any more',
}

function showReceipt(cli: Cli, receipt: WhisperReceipt): void {
  const { state, readsSpent, readLimit, reads, revealAt, endedAt, expiresAt } = receipt
  const { switch: bound } = receipt
  cli.answer(
    receipt,
    columns([
      ['state', state],
      ['reads', `${readsSpent} of ${readLimit}`],
      ...(revealAt === null ? [] : [['opens', `${away(revealAt, cli.now())}, ${revealAt}`]]),
      ...(bound === null
        ? []
        : [['switch', `${bound.state} since ${bound.since}: ${SWITCHES[bound.state]}`]]),
      endedAt === null
        ? ['expires', `${away(expiresAt, cli.now())}, ${expiresAt}`]
        : ['ended', `${away(endedAt, cli.now())}, ${endedAt}`],
      ...reads.map((minute) => ['read', `${away(minute, cli.now())}, ${minute}`]),
    ] as [string, string][]),
  )
}
