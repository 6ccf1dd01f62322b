/**
 * How events are stored and deleted. What reserves sequence numbers and bytes in the inbox carries every limit and
 * state, so concurrent requests cannot exceed the limits of the inbox.
 */
import { type Db, limitedTo, type Statement, type Value } from '../db/db.ts'
import type { Access } from './schema.ts'

export type NewEvent = {
  salt: number
  receivedAt: number
  access: Access
  method: string
  path: string
  query: string
  headerLines: Uint8Array
  mediaType: string | null
  body: Uint8Array
  /** The bytes that count against the storage of its inbox. */
  keptBytes: number
  bodySha256: string
  sourceIp: string
  ipLocation: string | null
}

/** What differs between the engines. An inbox is given by its number. */
export type EventTables = {
  /** What a query selects events from, by `inbox` and `sequence`. */
  source: string
  /** What a query selects from those events that `chosen` chooses, which is a condition, an order and a limit. */
  first(chosen: string): string
  /** The statements that store these events in one inbox, if this is its revision, or change nothing. */
  insert(inbox: { number: number; revision: number }, events: NewEvent[]): Statement[]
  /** Deletes the event of this sequence. */
  delete(inbox: number, sequence: number): Statement[]
  /**
   * Deletes events of an inbox, and returns a row for each. While there are more, it deletes at least `max`; a
   * large purge would block the writer.
   */
  purge(inbox: number, max: number): Statement[]
  /** Sorts what was stored lately into its place. */
  tidy(): Promise<void>
}

export const eventTables = (db: Db): EventTables =>
  db.engine === 'sqlite' ? createPlaces(db) : POSTGRES

const RESERVE = `update catch_inbox_use
  set accepted_request_count = accepted_request_count + $2, stored_bytes = stored_bytes + $3
  where number = $1 and revision = $5
    and destroyed_at is null and suspended_at is null and expires_at > $4
    and accepted_request_count + $2 <= request_limit and stored_bytes + $3 <= storage_limit_bytes`

/** The values of `RESERVE`. */
function reserved(
  { number, revision }: { number: number; revision: number },
  events: NewEvent[],
): Value[] {
  let bytes = 0
  let receivedAt = 0
  for (const event of events) {
    bytes += event.keptBytes
    receivedAt = Math.max(receivedAt, event.receivedAt)
  }
  return [number, events.length, bytes, receivedAt, revision]
}

/** Those whose values are `valuesOf` an event. */
const COLUMNS = `sequence, salt, received_at, access, method, media_type, body_bytes,
  source_ip, ip_location, path, query, body_sha256, body, kept_bytes, header_lines`
const VALUES_OF_EVENT = 15

/** Instead of its sequence, an event has its distance to the last. */
const valuesOf = (event: NewEvent, beforeLast: number): Value[] => [
  beforeLast,
  event.salt,
  event.receivedAt,
  event.access,
  event.method,
  event.mediaType,
  event.body.length,
  event.sourceIp,
  event.ipLocation,
  event.path,
  event.query,
  event.bodySha256,
  event.body,
  event.keptBytes,
  event.headerLines,
]

const placeholders = (first: number, count: number): string =>
  Array.from({ length: count }, (_, i) => `$${first + i}`).join(', ')

/**
 * After so many, what is recent is sorted in at once. More of them share a page, but every reader looks at all that
 * are not sorted yet, in up to 0.2 ms, and other writes wait for the 10 ms of the sorting.
 */
const EVENTS_BETWEEN = 4096
/**
 * Of one inbox, so many are sorted in together. Its others go into the index at once, where they share a page
 * anyway. To read a page of its events, all of its recent ones are looked at, 2 µs each.
 */
const RECENT_OF_INBOX = 64
const LIMITS = { between: EVENTS_BETWEEN, mostOfInbox: RECENT_OF_INBOX }

/**
 * SQLite writes whole pages. An index entry for each event of many inboxes in turn would dirty a page of its own, so
 * new entries are kept together in the order of arrival (`catch_event_recent`), and sorted into the index
 * (`catch_event_place`) when there are many: a page of it then takes several.
 */
export function createPlaces(
  db: Db,
  { between, mostOfInbox }: { between: number; mostOfInbox: number } = LIMITS,
): EventTables {
  /** Since the last sorting, in this process. A refused event counts too, which only sorts a little earlier. */
  let events = 0
  const recentOf = new Map<number, number>()
  let sorting: Promise<unknown> | null = null

  /** Decides whether so many more are recent, and counts them. */
  function areRecent(inbox: number, count: number): boolean {
    events += count
    const ofInbox = (recentOf.get(inbox) ?? 0) + count
    if (ofInbox > mostOfInbox) return false
    recentOf.set(inbox, ofInbox)
    return true
  }

  function sortIn(): Promise<unknown> {
    events = 0
    recentOf.clear()
    sorting ??= db
      .write({ lockKey: 'catch_event_recent', statements: SORT_IN, durability: 'deferred' })
      .finally(() => {
        sorting = null
      })
    return sorting
  }

  return {
    source: PLACED,
    // SQLite copies each column of `PLACED` once more, so only those that are chosen are read whole.
    first: (chosen) =>
      `(select id, sequence from ${PLACED} ${chosen}) cross join catch_event using (id, sequence)`,
    insert(inbox, some) {
      const isRecent = areRecent(inbox.number, some.length)
      // What is not sorted in now is found all the same, and the next turn tries again.
      if (events >= between) void sortIn().catch(() => undefined)
      const last = some.length - 1
      return [
        { text: RESERVE, values: reserved(inbox, some), expect: 1 },
        ...some.map((event, at) => ({
          text: INSERT,
          values: [inbox.number, ...valuesOf(event, last - at)],
          expect: 1,
        })),
        { text: isRecent ? ENTER_RECENT : ENTER_PLACE, values: [some.length], expect: some.length },
      ]
    },
    delete: (inbox, sequence) => [
      {
        text: `delete from catch_event
          where id = (select id from ${PLACED} where inbox = $1 and sequence = $2)`,
        values: [inbox, sequence],
        expect: 1,
      },
      {
        text: 'delete from catch_event_place where inbox = $1 and sequence = $2',
        values: [inbox, sequence],
      },
      {
        text: 'delete from catch_event_recent where inbox = $1 and sequence = $2',
        values: [inbox, sequence],
      },
    ],
    purge: (inbox, max) => PURGE.map((text) => ({ text, values: [inbox, max] })),
    async tidy() {
      const [some] = await db.read('select 1 as found from catch_event_recent limit 1')
      if (some) await sortIn()
    },
  }
}

/** Events with their places. `cross join` keeps this order: a place, then its row. */
const PLACED = `(${['catch_event_place', 'catch_event_recent']
  .map(
    (places) => `select place.inbox as inbox, place.id as id, place.${COLUMNS}
      from ${places} as place cross join catch_event as event on event.id = place.id`,
  )
  .join(' union all ')})`

const INSERT = `insert into catch_event (inbox, ${COLUMNS})
  select number, accepted_request_count - $2, ${placeholders(3, VALUES_OF_EVENT - 1)}
  from catch_inbox_use where number = $1`

/** Rows that were appended one after the other have ids one after the other. */
const APPENDED = `select id, inbox, sequence from catch_event where id > last_insert_rowid() - $1`
const ENTER_RECENT = `insert into catch_event_recent (id, inbox, sequence) ${APPENDED}`
const ENTER_PLACE = `insert into catch_event_place (id, inbox, sequence) ${APPENDED}`

const SORT_IN = {
  sorted: {
    text: `insert into catch_event_place (inbox, sequence, id)
      select inbox, sequence, id from catch_event_recent order by inbox, sequence`,
    values: [],
  },
  recent: { text: 'delete from catch_event_recent', values: [] },
}

const FIRST_PLACED = `from catch_event_place where inbox = $1 order by sequence ${limitedTo(2)}`
const FIRST_RECENT = `from catch_event_recent where inbox = $1 order by id ${limitedTo(2)}`
/** Rows first, because their places find them. */
const PURGE = [
  `delete from catch_event where id in (select id ${FIRST_PLACED}) returning sequence`,
  `delete from catch_event_place where inbox = $1 and sequence in (select sequence ${FIRST_PLACED})`,
  `delete from catch_event where id in (select id ${FIRST_RECENT}) returning sequence`,
  `delete from catch_event_recent where id in (select id ${FIRST_RECENT})`,
]

const POSTGRES: EventTables = {
  source: 'catch_event',
  first: (chosen) => `(select * from catch_event ${chosen}) as first`,
  /** One statement for all, which inserts nothing if the inbox refuses. */
  insert(inbox, events) {
    const last = events.length - 1
    const values = reserved(inbox, events)
    for (const [at, event] of events.entries()) values.push(...valuesOf(event, last - at))
    insertTexts[events.length] ??= insertText(events.length)
    return [{ text: insertTexts[events.length] as string, values, expect: events.length }]
  },
  delete: (inbox, sequence) => [
    {
      text: 'delete from catch_event where inbox = $1 and sequence = $2',
      values: [inbox, sequence],
      expect: 1,
    },
  ],
  purge: (inbox, max) => [
    {
      text: `delete from catch_event where inbox = $1 and sequence in (
          select sequence from catch_event where inbox = $1 order by sequence ${limitedTo(2)})
        returning sequence`,
      values: [inbox, max],
    },
  ],
  tidy: async () => undefined,
}

/** By the number of their events. A connection keeps each prepared, so a unit of ingest has few events. */
const insertTexts: string[] = []

/** PostgreSQL names the columns of `values` so. */
const EVENT = Array.from({ length: VALUES_OF_EVENT - 1 }, (_, i) => `column${i + 2}`).join(', ')

function insertText(events: number): string {
  const rows = Array.from(
    { length: events },
    (_, at) => `(${placeholders(6 + at * VALUES_OF_EVENT, VALUES_OF_EVENT)})`,
  )
  return `with used as (${RESERVE} returning accepted_request_count)
    insert into catch_event (inbox, ${COLUMNS})
    select $1, accepted_request_count - column1, ${EVENT}
    from used, (values ${rows.join(', ')}) as event`
}
