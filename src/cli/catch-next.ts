/** `mayfly catch next NAME`: waits for one webhook and shows it. */
import type { Command } from 'commander'
import { whole } from './catch-events.ts'
import { parseFilter } from './catch-filter.ts'
import { client, wholeNumber } from './cli.ts'
import { examples } from './examples.ts'
import { EXIT } from './exit.ts'
import { loadCatch } from './saved.ts'

/** A day. Node's timers end at about 24 days. */
const MAX_TIMEOUT_SECONDS = 86_400
/** The service reads no longer numbers. */
const MAX_SEQUENCE = 999_999_999_999_999

type Options = { after?: string; filter?: string; timeout?: string }

export function addCatchNext(parent: Command): void {
  parent
    .command('next')
    .description('wait for the next webhook, and show it')
    .argument('<name>', 'the inbox')
    .option('--after <sequence>', 'the next one after this; by default after the newest')
    .option('--filter <filter>', 'such as method=POST,contentType=application/json,q=opened')
    .option('--timeout <seconds>', 'fail after this time; by default when the inbox ends')
    .addHelpText(
      'after',
      examples(
        'mayfly catch next hooks --filter method=POST --timeout 60 --json',
        'mayfly catch next hooks --after 7',
      ),
    )
    .action(
      client<Options>(async (cli, options, [name]) => {
        const { capability, baseUrl } = loadCatch(cli, name)
        const filter = parseFilter(options.filter)
        const timeoutMs = options.timeout === undefined ? undefined : secondsOf(options.timeout)
        const inbox = cli.mayfly(baseUrl).catch(capability)
        const after =
          options.after === undefined
            ? (await inbox.page({ limit: 1 }, { signal: cli.signal })).latestSequence
            : sequenceOf(options.after)
        const event = await inbox.next({ after, filter, timeoutMs, signal: cli.signal })
        cli.answer(event, whole(event))
        return EXIT.ok
      }),
    )
}

const sequenceOf = (text: string): number =>
  wholeNumber(text, { option: '--after', least: 0, most: MAX_SEQUENCE })

/** In milliseconds. */
const secondsOf = (text: string): number =>
  wholeNumber(text, { option: '--timeout', least: 1, most: MAX_TIMEOUT_SECONDS }) * 1000
