/** `mayfly catch events|show|export|delete`: the events of an inbox, and the filter that chooses some. */
import { HAR_BETWEEN, HAR_END, HAR_START, harEntry } from '../../client/export.ts'
import {
  type CatchClient,
  type CatchEvent,
  type EventFilter,
  eventBody,
  toCurl,
  toJsonLines,
} from '../../client/index.ts'
import { FILTER_EXAMPLE, isFilter } from '../../lib/event-filters.ts'
import { inboxAddress } from '../addresses.ts'
import { client } from '../cli.ts'
import { whole } from '../declare.ts'
import { misuse, notThere } from '../exit.ts'
import { receiverOf } from '../options.ts'
import { partOf } from '../status.ts'
import { columns, harmless, shownOn, size } from '../text.ts'
import { loadCatch } from '../vault/saved.ts'

/** The most events that an inbox can hold. */
const MAX_EVENTS = 1_000_000
/** How many events the service answers at once. */
const PAGE = 50

export const FILTER = {
  '--filter <filter>': `such as ${FILTER_EXAMPLE},q=opened`,
}

export const addCatchEvents = client({
  command: 'events',
  says: 'list the webhooks of an inbox, newest first',
  takes: {
    '<name>': 'the inbox',
    ...FILTER,
    '--limit <count>': ['the maximum number', whole(1, MAX_EVENTS), 20],
  },
  examples: [
    'mayfly catch events hooks',
    'mayfly catch events hooks --filter q=opened --limit 100',
  ],
  async run(cli, { name, filter, limit }) {
    const { inbox } = loadCatch(cli, name)
    const events = await Array.fromAsync(newest(inbox, parseFilter(filter), limit))
    const lines = events.map((event) => `${harmless(event.id)}  ${described(event)}\n`)
    cli.answer(events, lines.join('') || 'There are no webhooks.\n')
  },
})

export const addCatchShow = client({
  command: 'show',
  says: 'show a whole webhook, by default the newest',
  takes: {
    '<name>': 'the inbox',
    '[event]': 'its id or sequence number',
    '--body': 'print only its body, unchanged',
  },
  examples: ['mayfly catch show hooks', 'mayfly catch show hooks 7 --body > body.bin'],
  async run(cli, { name, event: which, body }) {
    const event = await findEvent(loadCatch(cli, name).inbox, which)
    if (body && !process.stdout.isTTY) process.stdout.write(eventBody(event))
    else if (body) write(`${shownBody(event)}\n`)
    else cli.answer(event, shown(event))
  },
})

/** The newest events, at most this many, newest first. */
async function* newest(
  inbox: CatchClient,
  filter: EventFilter,
  limit: number,
): AsyncGenerator<CatchEvent> {
  let left = limit
  for await (const event of inbox.events({ ...filter, limit: Math.min(limit, PAGE) })) {
    yield event
    if (--left === 0) return
  }
}

/** The event with this id or sequence, by default the newest; null if there is none. */
export async function eventOf(inbox: CatchClient, which?: string): Promise<CatchEvent | null> {
  const isSequence = which !== undefined && /^\d{1,15}$/.test(which)
  if (which !== undefined && !isSequence) return partOf(inbox, inbox.event(which))
  const cursor = isSequence ? { cursor: Number(which) + 1 } : {}
  const [event = null] = (await inbox.page({ limit: 1, ...cursor })).events
  return isSequence && event?.sequence !== Number(which) ? null : event
}

/** The same. @throws CliError if it does not exist. */
export async function findEvent(inbox: CatchClient, which?: string): Promise<CatchEvent> {
  const event = await eventOf(inbox, which)
  if (event) return event
  throw notThere('There is no such webhook. `mayfly catch events` lists all.')
}

/** An event with its headers and body, for people. */
function shown(event: CatchEvent): string {
  const { sequence, id, receivedAt, access, sourceIp } = event
  const head = columns([
    ['webhook', `#${sequence}, ${id}`],
    ['received', `${receivedAt}, from ${sourceIp}, ${access}`],
    ['request', requestLine(event)],
    ['body', `${size(event.bodyBytes)}, SHA-256 ${event.bodySha256}`],
  ])
  const headers = event.headers.map(({ name, value }) => `${harmless(name)}: ${harmless(value)}\n`)
  return `${head}\n${headers.join('')}\n${shownBody(event)}\n`
}

const shownBody = (event: CatchEvent): string =>
  event.bodyEncoding === 'utf8'
    ? event.body
    : `(${size(event.bodyBytes)} of binary data; --body > FILE saves it)`

export const addCatchExport = client({
  command: 'export',
  says: 'export webhooks, oldest first, as curl commands, HAR or JSON lines',
  takes: {
    '<name>': 'the inbox',
    '--as <format>': ['the format', ['curl', 'har', 'jsonl'], 'jsonl'],
    '--to <url>': 'the target of the curl commands or HAR; by default the inbox',
    ...FILTER,
    '--limit <count>': ['at most this many, the newest', whole(1, MAX_EVENTS), MAX_EVENTS],
  },
  examples: [
    'mayfly catch export hooks > hooks.jsonl',
    'mayfly catch export hooks --as curl --to http://localhost:3000/hook --limit 1',
    'mayfly catch export hooks --as har > hooks.har',
  ],
  async run(cli, { name, as, to, filter, limit }) {
    const saved = loadCatch(cli, name)
    const url = to === undefined ? inboxAddress(saved) : receiverOf(to).href
    const { start = '', between = '', end = '', entry } = FORMATS[as]
    let before = start
    for await (const event of oldest(saved.inbox, parseFilter(filter), limit)) {
      write(before + entry(event, url))
      before = between
    }
    write((before === start ? start : '') + end)
  },
})

type Format = {
  start?: string
  between?: string
  end?: string
  entry(event: CatchEvent, url: string): string
}

/** An entry is written before the next page is asked for: all of an inbox is too much for one text. */
const FORMATS: Record<'curl' | 'har' | 'jsonl', Format> = {
  curl: { entry: (event, url) => `${toCurl(event, { url })}\n` },
  har: { start: HAR_START, between: HAR_BETWEEN, end: HAR_END, entry: harEntry },
  jsonl: { entry: (event) => toJsonLines([event]) },
}

/** The newest events, at most this many, but oldest first. */
async function* oldest(
  inbox: CatchClient,
  filter: EventFilter,
  limit: number,
): AsyncGenerator<CatchEvent> {
  let after = 0
  if (limit < MAX_EVENTS) {
    for await (const { sequence } of newest(inbox, filter, limit)) after = sequence - 1
  }
  for (;;) {
    const { events } = await inbox.page({ ...filter, after, limit: PAGE })
    const last = events.at(-1)
    if (last === undefined) return
    yield* events
    after = last.sequence
  }
}

const write = (text: string): boolean => process.stdout.write(shownOn(process.stdout, text))

/** @throws CliError for a name or value that the service would refuse. */
export function parseFilter(text: string | undefined): EventFilter {
  const filter: EventFilter = {}
  for (const part of (text ?? '').split(',').filter((some) => some !== '')) {
    const [name = '', ...rest] = part.split('=')
    const value = rest.join('=')
    const isKnown = name === 'q' || isFilter(name, value)
    if (value === '' || !isKnown) {
      throw misuse(`--filter must be a list such as ${FILTER_EXAMPLE},q=opened`)
    }
    Object.assign(filter, { [name]: value })
  }
  return filter
}

/** An event as one line. */
export function described(event: CatchEvent): string {
  const { sequence, receivedAt, bodyBytes } = event
  const time = new Date(receivedAt).toLocaleTimeString('en-GB')
  return `${time}  #${sequence}  ${requestLine(event)}  ${size(bodyBytes)}`
}

const requestLine = ({ method, path, query }: CatchEvent): string =>
  harmless(`${method} ${path || '/'}${query && `?${query}`}`)

export const addCatchDelete = client({
  command: 'delete',
  says: 'delete one webhook permanently',
  takes: { '<name>': 'the inbox', '<event>': 'its id or sequence number' },
  examples: [
    'mayfly catch delete hooks 7',
    'mayfly catch delete hooks 01a1fb67-e43b-78ca-9860-000000000001',
  ],
  async run(cli, { name, event: which }) {
    const { inbox } = loadCatch(cli, name)
    const { id, sequence } = await findEvent(inbox, which)
    await inbox.deleteEvent(id)
    cli.answer({ id, sequence, deleted: true }, `Webhook ${sequence} is deleted.\n`)
  },
})
