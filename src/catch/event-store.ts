/**
 * Events in the store; `event-insert.ts` puts them there. A reader asks for the size of an event before its
 * bytes, so that it reads only what fits into memory.
 */
import { type Db, limitedTo, places, type Statement, type Value } from '../db/db.ts'
import { EVENTS_JSON, FOUND, SMALL_PAGE } from './event-maps.ts'
import type { EventRow, EventSize, Found, FoundRow, JsonRow, PageRow } from './event-rows.ts'

/** Which events come first. */
export type Order = 'newest' | 'oldest'

export type EventFilter = {
  order: Order
  /** Newest first, the sequences are below this one; oldest first, above it. */
  from: number
  /** Columns and their required values. */
  equal: [column: string, value: string][]
}

const ORDERS = {
  newest: { beyond: '<', within: '>=', last: 'min', sorted: 'order by sequence desc' },
  oldest: { beyond: '>', within: '<=', last: 'max', sorted: 'order by sequence' },
} as const

const EVENT_COLUMNS = `sequence, salt, received_at, access, method, path, query, headers,
  content_type, header_lines, body, body_bytes, body_sha256, source_ip, ip_location`

/** Frees the event's bytes. It still counts as a request. `salt` is the random part of its id. */
export const deleteEvent = (publicId: string, sequence: number, salt: number): Statement[] => [
  {
    text: `update catch_inbox set stored_bytes = stored_bytes - (
        select coalesce(kept_bytes, body_bytes) from catch_event
        where public_id = $1 and sequence = $2)
      where public_id = $1 and exists (
        select 1 from catch_event where public_id = $1 and sequence = $2 and salt = $3)
      returning public_id`,
    values: [publicId, sequence, salt],
    expect: 1,
  },
  {
    text: 'delete from catch_event where public_id = $1 and sequence = $2 returning sequence',
    values: [publicId, sequence],
    expect: 1,
  },
]

export function createEventStore(db: Db) {
  return {
    /**
     * A page of the first events that match the filter, at most `limit`. Of an event that is larger than
     * its part of `bytes`, only the size is read.
     */
    first(
      publicId: string,
      filter: EventFilter,
      max: { limit: number; bytes: number; latestSequence: number },
    ): Promise<PageRow[]> {
      const { where, values } = conditions(publicId, filter)
      // One more than the page has, which tells whether there are more.
      const limit = max.limit + 1
      return db.readMapped<PageRow>({
        text: `select ${smallEvent(values.length + 1)} from catch_event where ${where}
         ${ORDERS[filter.order].sorted} ${limitedTo(values.length + 2)}`,
        values: [...values, bytesEach(max.bytes, limit), limit],
        through: SMALL_PAGE,
        // Only a page of the newest has a cursor.
        parameters: [max.limit, max.latestSequence, filter.order === 'newest' ? 0 : 1, null],
      })
    },

    /** The events above a sequence, oldest first; large ones as in `first`. */
    oldest(
      publicId: string,
      above: number,
      max: { limit: number; bytes: number },
    ): Promise<EventSize[]> {
      return db.read<EventSize>(
        `select ${smallEvent(3)} from catch_event where public_id = $1 and sequence > $2
         order by sequence ${limitedTo(4)}`,
        publicId,
        above,
        bytesEach(max.bytes, max.limit),
        max.limit,
      )
    },

    /** A page of the events that a search has found; large ones as in `first`. */
    sized(
      publicId: string,
      { sequences, nextCursor }: Found,
      max: { order: Order; bytes: number; latestSequence: number },
    ): Promise<PageRow[]> {
      return db.readMapped<PageRow>({
        text: `select ${smallEvent(2)} from catch_event
         where public_id = $1 and sequence in (${places(sequences, 3)})
         ${ORDERS[max.order].sorted}`,
        values: [publicId, bytesEach(max.bytes, sequences.length), ...sequences],
        through: SMALL_PAGE,
        parameters: [sequences.length, max.latestSequence, 1, nextCursor],
      })
    },

    /**
     * For a search: looks at the next `limit` events, and returns the sizes of those that match the
     * filter. `last` is the last sequence it looked at, matching or not; null without events. The limit applies before the filter, so that no filter makes a query look at more events.
     */
    async sizes(
      publicId: string,
      filter: EventFilter,
      limit: number,
    ): Promise<{ sizes: { sequence: number; bytes: number }[]; last: number | null }> {
      const { beyond, within, last: lastOf, sorted } = ORDERS[filter.order]
      const [window] = await db.read<{ last: number | null }>(
        `select ${lastOf}(sequence) as last from (
           select sequence from catch_event where public_id = $1 and sequence ${beyond} $2
           ${sorted} ${limitedTo(3)}) as next`,
        publicId,
        filter.from,
        limit,
      )
      const last = window?.last ?? null
      if (last === null) return { sizes: [], last }
      const { where, values } = conditions(publicId, filter)
      const sizes = await db.read<{ sequence: number; bytes: number }>(
        `select sequence, ${SEARCHED_BYTES} as bytes
         from catch_event where ${where} and sequence ${within} $${values.length + 1} ${sorted}`,
        ...values,
        last,
      )
      return { sizes, last }
    },

    /** Those of these events in which a search finds this text. */
    searched(
      publicId: string,
      { sequences, order }: { sequences: number[]; order: Order },
      wanted: string,
    ): Promise<FoundRow[]> {
      return db.scan<FoundRow>({
        text: `select sequence, body_bytes, path, query, content_type, headers, header_lines, body
         from catch_event where public_id = $1 and sequence in (${places(sequences, 2)})
         ${ORDERS[order].sorted}`,
        values: [publicId, ...sequences],
        through: FOUND,
        parameters: [wanted],
      })
    },

    /** These events in JSON. */
    json(
      publicId: string,
      { sequences, order }: { sequences: number[]; order: Order },
    ): Promise<JsonRow[]> {
      return db.readMapped<JsonRow>({
        text: wholeEvents(sequences, order),
        values: [publicId, ...sequences],
        through: EVENTS_JSON,
        parameters: [],
      })
    },

    /** Whole events, newest first. */
    events(publicId: string, sequences: number[]): Promise<EventRow[]> {
      return db.read<EventRow>(wholeEvents(sequences, 'newest'), publicId, ...sequences)
    },
  }
}

export type EventStore = ReturnType<typeof createEventStore>

/** The second column of a content type, and two bytes for each header line: what `kept_bytes` leaves out. */
const UNCOUNTED_BYTES = 1024

/**
 * At least the bytes of an event's columns. One number, because it is asked for each column of each event; an event
 * from before it has its headers in `headers`.
 */
const BYTES = `coalesce(kept_bytes + ${UNCOUNTED_BYTES}, body_bytes + octet_length(path) + octet_length(query)
  + octet_length(headers) + coalesce(octet_length(content_type), 0))`
/** What a search reads of an event. */
const SEARCHED_BYTES =
  'body_bytes + octet_length(path) + octet_length(query) + coalesce(octet_length(header_lines), octet_length(headers))'

/** The columns of an event, or only its size if that exceeds the parameter at `place`. */
const smallEvent = (place: number): string => {
  // Of a large body, what is stored behind it is not asked for.
  const isSmall = `body_bytes <= $${place} and ${BYTES} <= $${place}`
  const small = (column: string): string => `case when ${isSmall} then ${column} end as ${column}`
  const long = ['path', 'query', 'headers', 'content_type', 'header_lines', 'body']
  return `sequence, salt, received_at, access, method, ${long.map(small).join(', ')},
    body_bytes, body_sha256, source_ip, ip_location,
    ${BYTES} as size`
}

const wholeEvents = (sequences: number[], order: Order): string =>
  `select ${EVENT_COLUMNS} from catch_event
   where public_id = $1 and sequence in (${places(sequences, 2)}) ${ORDERS[order].sorted}`

const bytesEach = (bytes: number, events: number): number => Math.floor(bytes / events)

function conditions(publicId: string, filter: EventFilter): { where: string; values: Value[] } {
  const parts: [string, Value][] = [
    ['public_id =', publicId],
    [`sequence ${ORDERS[filter.order].beyond}`, filter.from],
  ]
  for (const [column, value] of filter.equal) parts.push([`${column} =`, value])
  return {
    where: parts.map(([condition], i) => `${condition} $${i + 1}`).join(' and '),
    values: parts.map(([, value]) => value),
  }
}
