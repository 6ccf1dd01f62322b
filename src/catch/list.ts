/** The list of events of an inbox, as a page in JSON: at once, or when there are newer ones. */
import { invalid, unauthorized } from '../http/errors.ts'
import type { Reservation } from '../http/memory.ts'
import { type LongPoll, POLL_EVERY_MS } from '../http/streams.ts'
import type { Clock } from '../lib/clock.ts'
import { EVENT_FILTERS, FILTER_NAMES, type FilterName } from '../lib/event-filters.ts'
import type { EventFilter, EventStore } from './event-store.ts'
import { isEmpty, MAX_PAGE_BYTES, type PageAsk, pageParts, readPage } from './page.ts'
import type { EventQuery } from './schema.ts'
import type { Search } from './search.ts'
import { stateOf } from './state.ts'
import type { InboxRow, InboxStore } from './store.ts'

const DEFAULT_LIMIT = 20

/** Who reads a page: the memory that is reserved for it, and a signal that aborts a search. */
export type Reader = { reservation: Reservation; gone: AbortSignal }

/** Yields the parts of an `EventPage` in JSON and returns the last one. */
export type List = (
  inbox: InboxRow,
  query: EventQuery,
  reader: Reader,
) => AsyncGenerator<Buffer, Buffer>

/**
 * Waits until there are events after the query's sequence, or after the latest, and yields their page like
 * `List`. The page is empty if the wait is over, or if no event can come for now.
 * @throws Problem `unauthorized` once the inbox is destroyed.
 */
export type AwaitList = (
  inbox: InboxRow,
  query: EventQuery,
  waiting: Reader & { poll: LongPoll },
) => AsyncGenerator<Buffer, Buffer>

/** @throws Problem for parameters that exclude each other. */
export function checkQuery({ after, wait, cursor }: EventQuery): void {
  const isAscending = after !== undefined || wait !== undefined
  if (isAscending && cursor !== undefined) {
    throw invalid('invalid query', {
      field: 'cursor',
      expected: 'none together with after or wait',
    })
  }
}

export function createList({
  store,
  inboxes,
  search,
  clock,
}: {
  store: EventStore
  inboxes: InboxStore
  search: Search
  clock: Clock
}): { page: List; awaitPage: AwaitList } {
  const isOpen = async ({ public_id: publicId, expires_at: expiresAt }: InboxRow) =>
    expiresAt > clock.now() && (await inboxes.inbox(publicId)) !== null

  const searched = async (ask: PageAsk, { q: text }: EventQuery, gone: AbortSignal) =>
    text ? search({ ...ask, text, max: { limit: ask.limit, bytes: MAX_PAGE_BYTES } }, gone) : null

  return {
    async *page(inbox, asked, { reservation, gone }) {
      if (inbox.expires_at <= clock.now()) return emptyPage(inbox.last_sequence)
      // A wait of no time looks for what comes after the latest event.
      const query = asked.wait === undefined ? asked : { after: inbox.last_sequence, ...asked }
      const ask = askOf(inbox, query)
      ask.found = await searched(ask, query, gone)
      const rows = await readPage(ask, { store, reservation })
      return yield* pageParts(ask, rows, { store, reservation, isOpen: () => isOpen(inbox) })
    },

    async *awaitPage(
      { public_id: publicId, last_sequence: latest },
      query,
      { reservation, gone, poll },
    ) {
      let after = query.after ?? latest
      for (;;) {
        // Read before the events, so that an inbox that has ended has no event that was missed.
        const inbox = await inboxes.inbox(publicId)
        if (!inbox) throw unauthorized()
        const state = stateOf(inbox, clock.now())
        if (state !== 'expired' && inbox.last_sequence > after) {
          const ask = askOf(inbox, { ...query, after })
          ask.found = await searched(ask, query, gone)
          const rows = await readPage(ask, { store, reservation })
          if (!isEmpty(rows)) {
            return yield* pageParts(ask, rows, { store, reservation, isOpen: () => isOpen(inbox) })
          }
          reservation.resize(0)
          // The filter leaves out all events up to here, or they were deleted.
          after = inbox.last_sequence
        }
        if (state !== 'active' || !poll.isWaiting()) return emptyPage(inbox.last_sequence)
        await poll.wait(Math.min(POLL_EVERY_MS, inbox.expires_at - clock.now()))
      }
    },
  }
}

const askOf = (inbox: InboxRow, query: EventQuery): PageAsk => ({
  inbox: inbox.number,
  filter: filterOf(query),
  limit: query.limit ?? DEFAULT_LIMIT,
  latestSequence: inbox.last_sequence,
  found: null,
})

const emptyPage = (latestSequence: number): Buffer =>
  Buffer.from(`{"events":[],"nextCursor":null,"latestSequence":${latestSequence}}`)

function filterOf(query: EventQuery): EventFilter {
  const { after, cursor = Number.MAX_SAFE_INTEGER } = query
  const equal = equalOf(query)
  return after === undefined
    ? { order: 'newest', from: cursor, equal }
    : { order: 'oldest', from: after, equal }
}

/** The columns that the filters compare, and what each must be. */
export function equalOf(query: Pick<EventQuery, FilterName>): EventFilter['equal'] {
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
