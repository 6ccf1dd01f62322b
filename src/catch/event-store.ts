/**
 * Events in the store; `event-tables.ts` puts them there. A reader asks for the size of an event before its
 * bytes, so that it reads only what fits into memory.
 */
import { type Db, limitedTo, places, type Statement, type Value } from '../db/db.ts'
import { EVENTS_JSON, FOUND, SMALL_PAGE } from './event-maps.ts'
import type { EventRow, EventSize, Found, FoundRow, JsonRow, PageRow } from './event-rows.ts'
import type { EventTables } from './event-tables.ts'

/** Which events come first. */
export type Order = 'newest' | 'oldest'

export type EventFilter = {
  order: Order
  /** Newest first, the sequences are below this one; oldest first, above it. */
  from: number
  /** Columns and their required values. */
  equal: [column: string, value: string][]
  /** Only these. Default: any. */
  among?: number[] | undefined
}

const ORDERS = {
  newest: { beyond: '<', within: '>=', last: 'min', sorted: 'order by sequence desc' },
  oldest: { beyond: '>', within: '<=', last: 'max', sorted: 'order by sequence' },
} as const

const EVENT_COLUMNS = `sequence, salt, received_at, access, method, path, query,
  content_type, header_lines, body, body_bytes, body_sha256, source_ip, ip_location`

/** Frees the event's bytes. It still counts as a request. `salt` is the random part of its id. */
export const deleteEvent = (
  tables: Pick<EventTables, 'source' | 'delete'>,
  inbox: number,
  { sequence, salt }: { sequence: number; salt: number },
): Statement[] => [
  {
    text: `update catch_inbox_use set stored_bytes = stored_bytes - (
        select kept_bytes from ${tables.source} where inbox = $1 and sequence = $2 and salt = $3)
      where number = $1 and exists (
        select 1 from ${tables.source} where inbox = $1 and sequence = $2 and salt = $3)`,
    values: [inbox, sequence, salt],
    expect: 1,
  },
  ...tables.delete(inbox, sequence),
]

export function createEventStore(db: Db, source: string) {
  return {
    /**
     * A page of the first events that match the filter, at most `limit`. Of an event that is larger than
     * its part of `bytes`, only the size is read.
     */
    first(
      inbox: number,
      filter: EventFilter,
      max: { limit: number; bytes: number; latestSequence: number },
    ): Promise<PageRow[]> {
      const { where, values } = conditions(inbox, filter)
      // One more than the page has, which tells whether there are more.
      const limit = max.limit + 1
      return db.readMapped<PageRow>({
        text: `select ${smallEvent(values.length + 1)} from ${source} where ${where}
         ${ORDERS[filter.order].sorted} ${limitedTo(values.length + 2)}`,
        values: [...values, bytesEach(max.bytes, limit), limit],
        through: SMALL_PAGE,
        // Only a page of the newest has a cursor.
        parameters: [max.limit, max.latestSequence, filter.order === 'newest' ? 0 : 1, null],
      })
    },

    /** The first events that match the filter; large ones as in `first`. */
    some(
      inbox: number,
      filter: EventFilter,
      max: { limit: number; bytes: number },
    ): Promise<EventSize[]> {
      const { where, values } = conditions(inbox, filter)
      return db.read<EventSize>(
        `select ${smallEvent(values.length + 1)} from ${source} where ${where}
         ${ORDERS[filter.order].sorted} ${limitedTo(values.length + 2)}`,
        ...values,
        bytesEach(max.bytes, max.limit),
        max.limit,
      )
    },

    /** A page of the events that a search has found; large ones as in `first`. */
    sized(
      inbox: number,
      { sequences, nextCursor }: Found,
      max: { order: Order; bytes: number; latestSequence: number },
    ): Promise<PageRow[]> {
      return db.readMapped<PageRow>({
        text: `select ${smallEvent(2)} from ${source}
         where inbox = $1 and sequence in (${places(sequences, 3)})
         ${ORDERS[max.order].sorted}`,
        values: [inbox, bytesEach(max.bytes, sequences.length), ...sequences],
        through: SMALL_PAGE,
        parameters: [sequences.length, max.latestSequence, 1, nextCursor],
      })
    },

    /**
     * For a search: looks at the next `limit` events, and returns the sizes of those that match the
     * filter. `last` is the last sequence it looked at, matching or not; null without events. The limit applies before the filter, so that no filter makes a query look at more events.
     */
    async sizes(
      inbox: number,
      filter: EventFilter,
      limit: number,
    ): Promise<{ sizes: { sequence: number; bytes: number }[]; last: number | null }> {
      const { beyond, within, last: lastOf, sorted } = ORDERS[filter.order]
      const [window] = await db.read<{ last: number | null }>(
        `select ${lastOf}(sequence) as last from (
           select sequence from ${source} where inbox = $1 and sequence ${beyond} $2
           ${sorted} ${limitedTo(3)}) as next`,
        inbox,
        filter.from,
        limit,
      )
      const last = window?.last ?? null
      if (last === null) return { sizes: [], last }
      const { where, values } = conditions(inbox, filter)
      const sizes = await db.read<{ sequence: number; bytes: number }>(
        `select sequence, ${SEARCHED_BYTES} as bytes
         from ${source} where ${where} and sequence ${within} $${values.length + 1} ${sorted}`,
        ...values,
        last,
      )
      return { sizes, last }
    },

    /** Those of these events in which a search finds this text. */
    searched(
      inbox: number,
      { sequences, order }: { sequences: number[]; order: Order },
      wanted: string,
    ): Promise<FoundRow[]> {
      return db.scan<FoundRow>({
        text: `select sequence, body_bytes, path, query, content_type, header_lines, body
         from ${source} where inbox = $1 and sequence in (${places(sequences, 2)})
         ${ORDERS[order].sorted}`,
        values: [inbox, ...sequences],
        through: FOUND,
        parameters: [wanted],
      })
    },

    /** These events in JSON. */
    json(
      inbox: number,
      { sequences, order }: { sequences: number[]; order: Order },
    ): Promise<JsonRow[]> {
      return db.readMapped<JsonRow>({
        text: wholeEvents(source, sequences, order),
        values: [inbox, ...sequences],
        through: EVENTS_JSON,
        parameters: [],
      })
    },

    /** Whole events, newest first. */
    events(inbox: number, sequences: number[]): Promise<EventRow[]> {
      return db.read<EventRow>(wholeEvents(source, sequences, 'newest'), inbox, ...sequences)
    },
  }
}

export type EventStore = ReturnType<typeof createEventStore>

/**
 * At least the bytes of an event's columns: `kept_bytes` leaves out the second column of a content type, and two bytes
 * for each header line. One number, because it is asked for each column of each event.
 */
const BYTES = 'kept_bytes + 1024'
/** What a search reads of an event. */
const SEARCHED_BYTES =
  'body_bytes + octet_length(path) + octet_length(query) + octet_length(header_lines)'

/** The columns of an event, or only its size if that exceeds the parameter at `place`. */
const smallEvent = (place: number): string => {
  // Of a large body, what is stored behind it is not asked for.
  const isSmall = `body_bytes <= $${place} and ${BYTES} <= $${place}`
  const small = (column: string): string => `case when ${isSmall} then ${column} end as ${column}`
  const long = ['path', 'query', 'content_type', 'header_lines', 'body']
  return `sequence, salt, received_at, access, method, ${long.map(small).join(', ')},
    body_bytes, body_sha256, source_ip, ip_location,
    ${BYTES} as size`
}

const wholeEvents = (source: string, sequences: number[], order: Order): string =>
  `select ${EVENT_COLUMNS} from ${source}
   where inbox = $1 and sequence in (${places(sequences, 2)}) ${ORDERS[order].sorted}`

const bytesEach = (bytes: number, events: number): number => Math.floor(bytes / events)

function conditions(inbox: number, filter: EventFilter): { where: string; values: Value[] } {
  const parts: [string, Value][] = [
    ['inbox =', inbox],
    [`sequence ${ORDERS[filter.order].beyond}`, filter.from],
  ]
  for (const [column, value] of filter.equal) parts.push([`${column} =`, value])
  const { among } = filter
  const where = parts.map(([condition], i) => `${condition} $${i + 1}`)
  if (among) where.push(`sequence in (${places(among, parts.length + 1)})`)
  const values = parts.map(([, value]) => value)
  return { where: where.join(' and '), values: [...values, ...(among ?? [])] }
}
