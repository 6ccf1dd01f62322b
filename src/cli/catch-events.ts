/** `mayfly catch events|show`: the stored events of an inbox. */
import type { Command } from 'commander'
import { type CatchClient, type CatchEvent, type EventFilter, eventBody } from '../client/index.ts'
import { parseFilter } from './catch-filter.ts'
import { described } from './catch-listen.ts'
import { client, wholeNumber } from './cli.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { loadCatch } from './saved.ts'
import { columns, harmless, size } from './text.ts'

/** The most events that an inbox can hold. */
const MAX_EVENTS = 1_000_000

export function addCatchEvents(parent: Command): void {
  addEvents(parent)
  addShow(parent)
}

function addEvents(parent: Command): void {
  parent
    .command('events')
    .description('list the webhooks of an inbox, newest first')
    .argument('<name>', 'the inbox')
    .option('--filter <filter>', 'such as method=POST,contentType=application/json,q=opened')
    .option('--limit <count>', 'the maximum number', '20')
    .addHelpText(
      'after',
      examples(
        'mayfly catch events hooks',
        'mayfly catch events hooks --filter q=opened --limit 100',
      ),
    )
    .action(
      client<{ filter?: string; limit: string }>(async (cli, options, [name]) => {
        const { capability, baseUrl } = loadCatch(cli, name)
        const limit = wholeNumber(options.limit, { option: '--limit', least: 1, most: MAX_EVENTS })
        const inbox = cli.mayfly(baseUrl).catch(capability)
        const events = await newest(inbox, parseFilter(options.filter), limit)
        const lines = events.map((event) => `${harmless(event.id)}  ${described(event)}\n`)
        cli.answer(events, lines.length > 0 ? lines.join('') : 'There are no webhooks.\n')
        return EXIT.ok
      }),
    )
}

function addShow(parent: Command): void {
  parent
    .command('show')
    .description('show a whole webhook, by default the newest')
    .argument('<name>', 'the inbox')
    .argument('[event]', 'its id or sequence number')
    .option('--body', 'print only its body, unchanged')
    .addHelpText(
      'after',
      examples('mayfly catch show hooks', 'mayfly catch show hooks 7 --body > body.bin'),
    )
    .action(
      client<{ body?: true }, [name: string, event?: string]>(
        async (cli, options, [name, which]) => {
          const { capability, baseUrl } = loadCatch(cli, name)
          const event = await findEvent(cli.mayfly(baseUrl).catch(capability), which)
          if (options.body && !process.stdout.isTTY) process.stdout.write(eventBody(event))
          else if (options.body) process.stdout.write(`${shownBody(event)}\n`)
          else cli.answer(event, whole(event))
          return EXIT.ok
        },
      ),
    )
}

/** The newest events, at most this many, newest first. */
export async function newest(
  inbox: CatchClient,
  filter: EventFilter,
  limit: number,
): Promise<CatchEvent[]> {
  const events: CatchEvent[] = []
  for await (const event of inbox.events({ ...filter, limit: Math.min(limit, 50) })) {
    events.push(event)
    if (events.length === limit) break
  }
  return events
}

/** The event with this id or sequence, by default the newest. @throws CliError if it does not exist. */
export async function findEvent(inbox: CatchClient, which?: string): Promise<CatchEvent> {
  const sequence = which !== undefined && /^\d{1,15}$/.test(which) ? Number(which) : null
  const last = which === undefined ? null : (sequence ?? sequenceOf(which))
  const cursor = last === null ? {} : { cursor: last + 1 }
  const { events } = await inbox.page({ limit: 1, ...cursor })
  const [event] = events
  const isFound =
    event !== undefined &&
    (which === undefined ||
      event.id === which ||
      (sequence !== null && event.sequence === sequence))
  if (isFound) return event
  throw new CliError('There is no such webhook. `mayfly catch events` lists all.', EXIT.gone)
}

/** The sequence in an event id, which is its last 48 bits. */
function sequenceOf(id: string): number {
  const [, digits] = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}([0-9a-f]{12})$/.exec(id) ?? []
  if (digits === undefined) {
    throw new CliError('Name a webhook by its id or sequence number.', EXIT.usage)
  }
  return Number.parseInt(digits, 16)
}

/** An event with its headers and body, for people. */
export function whole(event: CatchEvent): string {
  const { sequence, id, receivedAt, access, sourceIp, method, path, query } = event
  const head = columns([
    ['webhook', `#${sequence}, ${id}`],
    ['received', `${receivedAt}, from ${sourceIp}, ${access}`],
    ['request', harmless(`${method} ${path || '/'}${query === '' ? '' : `?${query}`}`)],
    ['body', `${size(event.bodyBytes)}, SHA-256 ${event.bodySha256}`],
  ])
  const headers = event.headers.map(({ name, value }) => `${harmless(name)}: ${harmless(value)}\n`)
  return `${head}\n${headers.join('')}\n${shownBody(event)}\n`
}

const shownBody = (event: CatchEvent): string =>
  event.bodyEncoding === 'utf8'
    ? harmless(event.body, { lines: true })
    : `(${size(event.bodyBytes)} of binary data; --body > FILE saves it)`
