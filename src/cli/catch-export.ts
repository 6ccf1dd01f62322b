/** `mayfly catch export`: webhooks as curl commands, HAR or JSON lines. */
import type { Command } from 'commander'
import { toCurl, toHar, toJsonLines } from '../client/index.ts'
import { inboxAddress } from './addresses.ts'
import { newest } from './catch-events.ts'
import { parseFilter } from './catch-filter.ts'
import { client, wholeNumber } from './cli.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { receiverOf } from './forward.ts'
import { loadCatch } from './saved.ts'
import { shownOn } from './text.ts'

/** The most events that an inbox can hold. */
const MAX_EVENTS = 1_000_000

type Options = { as: string; to?: string; filter?: string; limit: string }

export function addCatchExport(parent: Command): void {
  parent
    .command('export')
    .description('export webhooks, oldest first, as curl commands, HAR or JSON lines')
    .argument('<name>', 'the inbox')
    .option('--as <format>', 'curl, har or jsonl', 'jsonl')
    .option('--to <url>', 'the target of the curl commands or HAR; by default the inbox')
    .option('--filter <filter>', 'such as method=POST,contentType=application/json,q=opened')
    .option('--limit <count>', 'at most this many, the newest', String(MAX_EVENTS))
    .addHelpText(
      'after',
      examples(
        'mayfly catch export hooks > hooks.jsonl',
        'mayfly catch export hooks --as curl --to http://localhost:3000/hook --limit 1',
        'mayfly catch export hooks --as har > hooks.har',
      ),
    )
    .action(
      client<Options>(async (cli, options, [name]) => {
        const { capability, baseUrl } = loadCatch(cli, name)
        const limit = wholeNumber(options.limit, { option: '--limit', least: 1, most: MAX_EVENTS })
        const url =
          options.to === undefined
            ? inboxAddress({ capability, baseUrl })
            : receiverOf(options.to).href
        const inbox = cli.mayfly(baseUrl).catch(capability)
        const events = await newest(inbox, parseFilter(options.filter), limit)
        events.reverse()
        switch (options.as) {
          case 'curl':
            for (const event of events) write(`${toCurl(event, { url })}\n`)
            return EXIT.ok
          case 'har':
            write(toHar(events, { url }))
            return EXIT.ok
          case 'jsonl':
            write(toJsonLines(events))
            return EXIT.ok
          default:
            throw new CliError('--as must be curl, har or jsonl.', EXIT.usage)
        }
      }),
    )
}

const write = (text: string): boolean => process.stdout.write(shownOn(process.stdout, text))
