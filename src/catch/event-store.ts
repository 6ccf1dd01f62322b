/**
 * Events in the store; `event-tables.ts` puts them there. A reader asks for the sizes of events before their bytes, so
 * that it reads only what fits into memory.
 */
import { type Db, limitedTo, places, type Row, type Statement, type Value } from '../db/db.ts'
import { EVENTS_JSON, type EventRow, type JsonRow, type SizedRow } from './event.ts'
import type { EventTables } from './event-tables.ts'
import { FOUND, type FoundRow } from './found.ts'

/** Which events come first. */
export type Order = 'newest' | 'oldest'

export type EventFilter = {
  order: Order
  /** Newest first, the sequences are below this one; oldest first, above it. */
  from: number
  /** Columns and their required values. */
  equal: [column: string, value: string][]
}

/** An event, and an upper bound of the bytes of its columns. It may have been read already. */
export type EventSize = { sequence: number; size: number; json?: Uint8Array | null }

const ORDERS = {
  newest: { beyond: '<', sorted: 'order by sequence desc' },
  oldest: { beyond: '>', sorted: 'order by sequence' },
} as const

/** `kept_bytes` leaves out the media type, and two bytes for each header line. */
const SIZE = 'kept_bytes + 1024 as size'

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

export function createEventStore(db: Db, tables: Pick<EventTables, 'source' | 'first'>) {
  const { source } = tables
  return {
    /** The first events that match the filter. Of one that is larger than its part of `bytes`, only the size is read. */
    first(
      inbox: number,
      { order, from, equal }: EventFilter,
      { limit, bytes }: { limit: number; bytes: number },
    ): Promise<SizedRow[]> {
      const { beyond, sorted } = ORDERS[order]
      const values = [inbox, from, ...valuesOf(equal)]
      const first = tables.first(
        `where ${matching(['inbox =', `sequence ${beyond}`, ...conditions(equal)])}
         ${sorted} ${limitedTo(values.length + 2)}`,
      )
      return db.read<SizedRow>(
        `select ${small(values.length + 1)} from ${first} ${sorted}`,
        ...values,
        Math.floor(bytes / limit),
        limit,
      )
    },

    /** The next events, whether they match the filter or not, so that no filter makes a query look at more of them. */
    window(
      inbox: number,
      { order, from, equal }: EventFilter,
      limit: number,
    ): Promise<(EventSize & { matches: number | null })[]> {
      const { beyond, sorted } = ORDERS[order]
      return db.scan<EventSize & { matches: number | null } & Row>({
        text: `select sequence, ${SIZE}, ${equal.length > 0 ? matching(conditions(equal), 4) : '1'} as matches
         from ${source} where inbox = $1 and sequence ${beyond} $2 ${sorted} ${limitedTo(3)}`,
        values: [inbox, from, limit, ...valuesOf(equal)],
      })
    },

    /** Those of these events that contain the text, as `found` tells. */
    searched(
      inbox: number,
      { sequences, order }: { sequences: number[]; order: Order },
      text: string,
    ): Promise<FoundRow[]> {
      return db.scan<FoundRow>({
        text: `select sequence, path, query, header_lines, body
         from ${source} where inbox = $1 and sequence in (${places(sequences, 2)})
         ${ORDERS[order].sorted}`,
        values: [inbox, ...sequences],
        through: FOUND,
        parameters: [text],
      })
    },

    /** Those of these events that still exist, in JSON. */
    json(
      inbox: number,
      { sequences, order }: { sequences: number[]; order: Order },
    ): Promise<JsonRow[]> {
      return db.scan<JsonRow>({
        text: `select ${EVENT_COLUMNS}, ${SIZE} from ${source}
         where inbox = $1 and sequence in (${places(sequences, 2)}) ${ORDERS[order].sorted}`,
        values: [inbox, ...sequences],
        through: EVENTS_JSON,
        parameters: [],
        isAwaited: true,
      })
    },

    async event(inbox: number, sequence: number): Promise<EventRow | null> {
      const [event] = await db.read<EventRow>(
        `select ${EVENT_COLUMNS} from ${source} where inbox = $1 and sequence = $2`,
        inbox,
        sequence,
      )
      return event ?? null
    },
  }
}

export type EventStore = ReturnType<typeof createEventStore>

const SHORT_COLUMNS = `sequence, salt, received_at, access, method, body_bytes, body_sha256, source_ip, ip_location`
const LONG_COLUMNS = ['path', 'query', 'header_lines', 'body']
const EVENT_COLUMNS = `${SHORT_COLUMNS}, ${LONG_COLUMNS.join(', ')}`

/** The columns of an event; the long ones only of an event that is no larger than the parameter at `place`. */
function small(place: number): string {
  // Of a large body, what is stored behind it is not asked for.
  const isSmall = `body_bytes <= $${place} and kept_bytes + 1024 <= $${place}`
  const long = LONG_COLUMNS.map((column) => `case when ${isSmall} then ${column} end as ${column}`)
  return `${SHORT_COLUMNS}, ${long.join(', ')}, ${SIZE}`
}

const conditions = (equal: EventFilter['equal']): string[] => equal.map(([column]) => `${column} =`)
const valuesOf = (equal: EventFilter['equal']): Value[] => equal.map(([, value]) => value)

/** Each condition with the next value. */
const matching = (all: string[], first = 1): string =>
  all.map((condition, i) => `${condition} $${first + i}`).join(' and ')
