/**
 * What an owner reads of the events: a page, at once or when there are new ones, and the live stream. Which events, and
 * how large they are, is read first. Then they are read in runs that fit into the memory that is reserved, each after
 * the client has taken the one before, so other requests run in between.
 */
import { Problem, problem, unauthorized } from '../http/errors.ts'
import type { Reservation } from '../http/memory.ts'
import { hasSameOwner } from '../http/owner-tokens.ts'
import {
  type EventStream,
  type LongPoll,
  POLL_EVERY_MS,
  type StreamEvent,
} from '../http/streams.ts'
import type { RunSlice, Scheduler } from '../http/turns.ts'
import { utf8 } from '../lib/bytes.ts'
import type { Clock } from '../lib/clock.ts'
import { EVENT_FILTERS, FILTER_NAMES, type FilterName } from '../lib/event-filters.ts'
import { eventsJson } from './event.ts'
import type { EventFilter, EventSize, EventStore, Order } from './event-store.ts'
import type { EventQuery, StreamQuery } from './schema.ts'
import { type InboxRow, type InboxStore, latestOf, stateOf } from './store.ts'

/** A page ends early before its JSON exceeds this. Its cursor continues after it. */
const MAX_PAGE_BYTES = 6 * 1024 * 1024
const DEFAULT_LIMIT = 20
/** The JSON around the events of a page. */
const PAGE_FRAME_BYTES = 128
/** How much a stream reads at a time. */
const STREAM_EVENTS = 32
const STREAM_BYTES = 128 * 1024
/** About the bytes of the events that are read together. A run has at least one event. */
const RUN_BYTES = 256 * 1024
/** What JSON adds to an event: member names, ids, times and hash, and the names in its header list. */
const FRAME_BYTES = 8 * 1024
/** A search looks at so many events in turn, and reads about so many bytes of them in a slice. */
const SEARCH_EVENTS = 256
const SEARCH_BYTES = 512 * 1024

/** Which events, in what order, and with which text unless it is empty; a signal aborts the search. */
type Ask = EventFilter & { text: string; gone: AbortSignal }

/** `nextCursor` is null if no older events are left, or newer ones are. */
type Chosen = { events: EventSize[]; nextCursor: number | null }
/** `last` is null if there are none. */
type Captures = { events: StreamEvent[]; last: number | null }
type Memory = Pick<Reservation, 'reserve' | 'whileReading' | 'waitTurn'>

type Store = { store: EventStore; inboxes: InboxStore }

export function createReading(deps: Store & { scheduler: Scheduler; clock: Clock }) {
  const { store, inboxes, scheduler, clock } = deps

  /**
   * The first events that are asked for: at most `limit`, and of those with a text about `MAX_PAGE_BYTES`. If they are
   * no more than `bytes`, they are read already. Null if the client has left.
   */
  async function choose(
    inbox: number,
    { ask, limit, bytes }: { ask: Ask; limit: number; bytes: number },
    memory: Memory,
  ): Promise<Chosen | null> {
    const { order, text, gone } = ask
    if (text !== '') {
      return scheduler.run(String(inbox), gone, (slice) => search(inbox, { ask, limit, slice }))
    }
    if (!(await memory.reserve(2 * bytes))) return null
    // One more than the page has, which tells whether there are more.
    const most = { limit: limit + 1, bytes }
    const read = await memory.whileReading(() => store.first(inbox, ask, most))
    const isCut = read.length > limit
    if (isCut) read.pop()
    // Beside a large one, small ones wait for the memory of their run like all others.
    const isSmall = read.every(({ body }) => body !== null)
    if (isSmall) await memory.waitTurn()
    const events = isSmall
      ? eventsJson(read)
      : read.map(({ sequence, size }) => ({ sequence, size }))
    return { events, nextCursor: isCut ? cursorAfter(order, events.at(-1)?.sequence) : null }
  }

  /** Looks at events in slices, so that other requests run in between. */
  async function search(
    inbox: number,
    { ask, limit, slice }: { ask: Ask; limit: number; slice: RunSlice },
  ): Promise<Chosen> {
    const { order, text } = ask
    const events: EventSize[] = []
    let bytes = 0
    for (let from = ask.from; ; ) {
      const window = await slice(() => store.window(inbox, { ...ask, from }, SEARCH_EVENTS))
      const last = window.at(-1)
      if (!last) return { events, nextCursor: null }
      from = last.sequence
      const waiting = runs(
        window.filter(({ matches }) => matches),
        SEARCH_BYTES,
      )
      for (let run = waiting.shift(); run; run = waiting.shift()) {
        const sequences = run.map(({ sequence }) => sequence)
        const found = await slice(() => store.searched(inbox, { sequences, order }, text))
        for (const { sequence, has_text } of found) {
          const at = sequences.indexOf(sequence)
          const { size } = run[at] as EventSize
          if (!has_text) {
            if (at + 1 < run.length) waiting.unshift(run.slice(at + 1))
          } else if (events.length === limit || (bytes > 0 && bytes + size > MAX_PAGE_BYTES)) {
            return { events, nextCursor: cursorAfter(order, events.at(-1)?.sequence) }
          } else {
            events.push({ sequence, size })
            bytes += size
          }
        }
      }
    }
  }

  /** The JSON of a run of events, without those that were deleted since; null if the client has left. */
  async function read(
    inbox: InboxRow,
    { order, run }: { order: Order; run: EventSize[] },
    memory: Memory,
  ): Promise<EventSize[] | null> {
    if (run[0]?.json) return run
    if (!(await memory.reserve(heldBy(run)))) return null
    const sequences = run.map(({ sequence }) => sequence)
    return memory.whileReading(() => store.json(inbox.number, { sequences, order }))
  }

  /** Yields the parts of a page and returns the last one. */
  async function* parts(
    inbox: InboxRow,
    { order, events, nextCursor }: Chosen & { order: Order },
    reservation: Reservation,
  ): AsyncGenerator<Buffer, Buffer> {
    const made: Uint8Array[] = [BEGINNING]
    function part(): Buffer {
      const json = Buffer.concat(made.splice(0))
      reservation.resize(json.length)
      return json
    }
    function ending(next: number | null): Buffer {
      made.push(utf8(`],"nextCursor":${next},"latestSequence":${latestOf(inbox)}}`))
      return part()
    }
    let bytes = PAGE_FRAME_BYTES
    let last: number | null = null
    for (const [place, run] of runs(events, RUN_BYTES).entries()) {
      if (place > 0) yield part()
      const json = await read(inbox, { order, run }, reservation)
      if (!json) throw problem('request timeout')
      // It may have ended while the client took the part before, and then its events are gone.
      if (place > 0 && !(await isShown(inbox.public_id))) throw unauthorized()
      for (const { sequence, json: event } of json) {
        if (!event) continue
        bytes += event.length + 1
        if (last !== null && bytes > MAX_PAGE_BYTES) return ending(cursorAfter(order, last))
        if (last !== null) made.push(COMMA)
        made.push(event)
        last = sequence
      }
    }
    return ending(nextCursor)
  }

  /** The next events for a stream, and the sequence of the last; null if that cannot be said now. */
  async function captures(
    inbox: InboxRow,
    ask: Ask,
    stream: EventStream,
  ): Promise<Captures | null> {
    const asked = { ask, limit: STREAM_EVENTS, bytes: STREAM_BYTES }
    const chosen = await choose(inbox.number, asked, stream).catch(noneForNow)
    const [run] = runs(chosen?.events ?? [], STREAM_BYTES)
    if (!run) return chosen && NO_CAPTURES
    const events = await read(inbox, { order: ask.order, run }, stream)
    if (!events) return null
    // To make text of them takes its time, and many streams may have read at once.
    await stream.waitTurn()
    return { events: events.map(capture), last: run.at(-1)?.sequence ?? null }
  }

  async function isShown(publicId: string): Promise<boolean> {
    const inbox = await inboxes.inbox(publicId)
    return inbox !== null && stateOf(inbox, clock.now()) !== 'expired'
  }

  return {
    /**
     * Yields the parts of an `EventPage` in JSON and returns the last one. With `poll`, it waits until there are events
     * after the query's sequence, or after the latest; the page is empty if the wait is over, or if no event can come
     * for now.
     * @throws Problem when the inbox is destroyed or the client has left.
     */
    async *page(
      found: InboxRow,
      query: EventQuery,
      { reservation, gone, poll }: { reservation: Reservation; gone: AbortSignal; poll?: LongPoll },
    ): AsyncGenerator<Buffer, Buffer> {
      const { limit = DEFAULT_LIMIT, cursor = Number.MAX_SAFE_INTEGER, q: text = '' } = query
      // A wait of no time looks for what comes after the latest event.
      let after = query.wait === undefined ? query.after : (query.after ?? latestOf(found))
      for (let inbox: InboxRow | null = found; ; ) {
        // Read before the events, so that an inbox that has ended has no event that was missed.
        if (poll) inbox = await inboxes.inbox(found.public_id)
        if (!inbox || !hasSameOwner(inbox, found)) throw unauthorized()
        const state = stateOf(inbox, clock.now())
        const order = after === undefined ? 'newest' : 'oldest'
        const ask: Ask = { order, from: after ?? cursor, equal: equalOf(query), text, gone }
        const isNone = state === 'expired' || (after !== undefined && latestOf(inbox) <= after)
        const asked = { ask, limit, bytes: RUN_BYTES }
        const chosen = isNone ? NONE : await choose(inbox.number, asked, reservation)
        if (!chosen) throw problem('request timeout')
        if (chosen.events.length > 0 || state !== 'active' || !poll?.isWaiting()) {
          return yield* parts(inbox, { ...chosen, order }, reservation)
        }
        // The filter leaves out all events up to here, or they were deleted.
        after = Math.max(after ?? 0, latestOf(inbox))
        await poll.wait(Math.min(POLL_EVERY_MS, inbox.expires_at - clock.now()))
      }
    },

    /** Sends stored events, then new ones, each once and in order, until the inbox ends or the client leaves. */
    async follow(
      found: InboxRow,
      query: StreamQuery,
      { from, stream, gone }: { from: number; stream: EventStream; gone: AbortSignal },
    ): Promise<void> {
      const ask = { order: 'oldest', equal: equalOf(query), text: query.q ?? '', gone } as const
      for (let above = from; stream.isOpen(); ) {
        // Read before the events, so that an inbox that has ended has no event that was missed.
        const inbox = await inboxes.inbox(found.public_id)
        // Without a word: who has the new token comes back with that.
        if (inbox && !hasSameOwner(inbox, found)) return
        const state = inbox ? stateOf(inbox, clock.now()) : 'manually_destroyed'
        const isNew = inbox !== null && state !== 'expired' && latestOf(inbox) > above
        const next = isNew ? await captures(inbox, { ...ask, from: above }, stream) : NO_CAPTURES
        if (isNew && next && next.last !== null) {
          // It empties the list, which alone holds the events while a slow reader takes them.
          if (!(await stream.sendAll(next.events))) return
          above = next.last
          continue
        }
        // The filter leaves out all events up to here.
        if (isNew && next) above = latestOf(inbox)
        // Without a word: its clients come back, and find it resumed or over.
        if (next && state === 'suspended') return
        if (next && state !== 'active') {
          await stream.send({ event: 'end', data: JSON.stringify({ status: state }) })
          return
        }
        await stream.wait(POLL_EVERY_MS)
      }
    },
  }
}

const NONE: Chosen = { events: [], nextCursor: null }
const NO_CAPTURES: Captures = { events: [], last: null }
const BEGINNING = utf8('{"events":[')
const COMMA = utf8(',')

/** The memory that events use while they become JSON. Escaping at most doubles a text. */
export const heldBy = (events: Pick<EventSize, 'size'>[]): number =>
  events.reduce((bytes, { size }) => bytes + 2 * size + FRAME_BYTES, 0)

/** Where a page that ends with this sequence continues. Oldest first, a page has no cursor. */
const cursorAfter = (order: Order, last: number | undefined): number | null =>
  order === 'newest' ? (last ?? null) : null

/** Cuts events into runs of so many bytes, or of one event. */
function runs(events: EventSize[], most: number): EventSize[][] {
  const all: EventSize[][] = []
  let bytes = 0
  for (const event of events) {
    bytes += event.size
    const run = all.at(-1)
    if (run && bytes <= most) run.push(event)
    else {
      all.push([event])
      bytes = event.size
    }
  }
  return all
}

/** Too many searches of this inbox run now. The stream looks again later. */
function noneForNow(error: unknown): null {
  if (error instanceof Problem && error.phrase === 'rate limited') return null
  throw error
}

const capture = ({ sequence, json }: EventSize): StreamEvent => ({
  event: 'capture',
  data: Buffer.from(json ?? []).toString(),
  id: String(sequence),
})

/** The columns that the filters compare, and what each must be. */
function equalOf(query: Pick<EventQuery, FilterName>): EventFilter['equal'] {
  const equal: EventFilter['equal'] = []
  for (const name of FILTER_NAMES) {
    const { column, normalized } = EVENT_FILTERS[name]
    const asked = query[name]
    if (asked !== undefined) equal.push([column, storable(normalized(asked) ?? '')])
  }
  return equal
}

/** PostgreSQL refuses U+0000 in text. No event has it in these columns, so the filter matches none. */
const storable = (text: string): string => (text.includes('\0') ? '' : text)
