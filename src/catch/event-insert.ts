/** The statements that store events. They check every limit of their inbox. */
import type { Db, Statement, Value } from '../db/db.ts'
import type { Access } from './schema.ts'

export type NewEvent = {
  salt: number
  receivedAt: number
  access: Access
  method: string
  path: string
  query: string
  headerLines: Uint8Array
  contentType: string | null
  mediaType: string | null
  body: Uint8Array
  /** The bytes that count against the storage of its inbox. */
  keptBytes: number
  bodySha256: string
  sourceIp: string
  ipLocation: string | null
}

/** The statements that store these events in one inbox, or change nothing. */
export type InsertEvents = (publicId: string, events: NewEvent[]) => Statement[]

/**
 * Reserves sequence numbers and bytes in the inbox, then stores the events under these numbers. What reserves
 * carries every limit and state, so concurrent requests cannot exceed the limits of the inbox.
 */
export function createInsertEvents({ canChangeInWith }: Db): InsertEvents {
  return canChangeInWith ? insertInOne : insertEach
}

const RESERVE_EVENTS = `update catch_inbox
  set accepted_request_count = accepted_request_count + $2, stored_bytes = stored_bytes + $3,
      last_sequence = last_sequence + $2
  where public_id = $1 and destroyed_at is null and suspended_at is null and expires_at > $4
    and accepted_request_count + $2 <= request_limit and stored_bytes + $3 <= storage_limit_bytes`

/** `$1` is the inbox. Without `headers`, which have a value of their own. */
const COLUMNS = `public_id, headers, sequence, salt, received_at, access, method, media_type, body_bytes,
  source_ip, ip_location, path, query, content_type, body_sha256, body, kept_bytes, header_lines`
/** The value of `headers` in every event that has `header_lines`. */
const JSON_OF_NO_HEADERS = "'[]'"

/** In the order of the columns after `headers`. Instead of its sequence, an event has its distance to the last. */
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
  event.contentType,
  event.bodySha256,
  event.body,
  event.keptBytes,
  event.headerLines,
]
const VALUES_OF_EVENT = 16

const INSERT_EVENT = `insert into catch_event (${COLUMNS})
  select $1, ${JSON_OF_NO_HEADERS}, last_sequence - $2, ${placeholders(3, VALUES_OF_EVENT - 1)}
  from catch_inbox where public_id = $1 and last_sequence > $2
  on conflict (public_id, sequence) do nothing`

/**
 * A statement for each event. An engine may send them although the first statement was refused: their sequence
 * numbers are then taken, and they store nothing.
 */
function insertEach(publicId: string, events: NewEvent[]): Statement[] {
  const last = events.length - 1
  return [
    { text: RESERVE_EVENTS, values: reserved(publicId, events), expect: 1 },
    ...events.map((event, place) => ({
      text: INSERT_EVENT,
      values: [publicId, ...valuesOf(event, last - place)],
      expect: 1,
    })),
  ]
}

/** By the number of their events. A connection keeps each prepared, so a unit of ingest has few events. */
const insertTexts: string[] = []

/** One statement for all, which inserts nothing if the inbox refuses. */
function insertInOne(publicId: string, events: NewEvent[]): Statement[] {
  const last = events.length - 1
  const values = reserved(publicId, events)
  for (const [place, event] of events.entries()) values.push(...valuesOf(event, last - place))
  insertTexts[events.length] ??= insertText(events.length)
  return [{ text: insertTexts[events.length] as string, values, expect: events.length }]
}

/** Both engines name the columns of `values` so. */
const EVENT = Array.from({ length: VALUES_OF_EVENT - 1 }, (_, i) => `column${i + 2}`).join(', ')

function insertText(events: number): string {
  const rows = Array.from(
    { length: events },
    (_, place) => `(${placeholders(5 + place * VALUES_OF_EVENT, VALUES_OF_EVENT)})`,
  )
  return `with inbox as (${RESERVE_EVENTS} returning last_sequence)
    insert into catch_event (${COLUMNS})
    select $1, ${JSON_OF_NO_HEADERS}, last_sequence - column1, ${EVENT}
    from inbox, (values ${rows.join(', ')}) as event`
}

/** The values of `RESERVE_EVENTS`. */
function reserved(publicId: string, events: NewEvent[]): Value[] {
  let bytes = 0
  let receivedAt = 0
  for (const event of events) {
    bytes += event.keptBytes
    receivedAt = Math.max(receivedAt, event.receivedAt)
  }
  return [publicId, events.length, bytes, receivedAt]
}

function placeholders(first: number, count: number): string {
  return Array.from({ length: count }, (_, i) => `$${first + i}`).join(', ')
}
