/**
 * The statements that store events. What reserves sequence numbers and bytes in the inbox carries every limit and
 * state, so concurrent requests cannot exceed the limits of the inbox. SQLite's are in `event-places.ts`.
 */
import type { Statement, Value } from '../db/db.ts'
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

/** What an engine has to say of how events are changed. */
export type EventWrites = {
  insert: InsertEvents
  /**
   * Deletes events of an inbox, and returns a row for each. While there are more, it deletes at least `max`; a
   * large purge would block the writer.
   */
  purge(publicId: string, max: number): Statement[]
  /** Sorts what was stored lately into its place. */
  tidy(): Promise<void>
}

/** @param inbox the condition of its row. */
export const reserveEvents = (table: string, inbox: string): string => `update ${table}
  set accepted_request_count = accepted_request_count + $2, stored_bytes = stored_bytes + $3,
      last_sequence = last_sequence + $2
  where ${inbox} and destroyed_at is null and suspended_at is null and expires_at > $4
    and accepted_request_count + $2 <= request_limit and stored_bytes + $3 <= storage_limit_bytes`

/** Those whose values are `valuesOf` an event. */
export const EVENT_COLUMNS = `sequence, salt, received_at, access, method, media_type, body_bytes,
  source_ip, ip_location, path, query, content_type, body_sha256, body, kept_bytes, header_lines`
/** The value of `headers` in every event that has `header_lines`. */
export const JSON_OF_NO_HEADERS = "'[]'"

/** Instead of its sequence, an event has its distance to the last. */
export const valuesOf = (event: NewEvent, beforeLast: number): Value[] => [
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
export const VALUES_OF_EVENT = 16

/** By the number of their events. A connection keeps each prepared, so a unit of ingest has few events. */
const insertTexts: string[] = []

/** One statement for all, which inserts nothing if the inbox refuses. For PostgreSQL. */
export const insertInOne: InsertEvents = (publicId, events) => {
  const last = events.length - 1
  const values = reserved(publicId, events)
  for (const [place, event] of events.entries()) values.push(...valuesOf(event, last - place))
  insertTexts[events.length] ??= insertText(events.length)
  return [{ text: insertTexts[events.length] as string, values, expect: events.length }]
}

/** PostgreSQL names the columns of `values` so. */
const EVENT = Array.from({ length: VALUES_OF_EVENT - 1 }, (_, i) => `column${i + 2}`).join(', ')

function insertText(events: number): string {
  const rows = Array.from(
    { length: events },
    (_, place) => `(${placeholders(5 + place * VALUES_OF_EVENT, VALUES_OF_EVENT)})`,
  )
  return `with inbox as (${reserveEvents('catch_inbox', 'public_id = $1')} returning last_sequence)
    insert into catch_event (public_id, headers, ${EVENT_COLUMNS})
    select $1, ${JSON_OF_NO_HEADERS}, last_sequence - column1, ${EVENT}
    from inbox, (values ${rows.join(', ')}) as event`
}

/** The values of `reserveEvents`. */
export function reserved(publicId: string, events: NewEvent[]): Value[] {
  let bytes = 0
  let receivedAt = 0
  for (const event of events) {
    bytes += event.keptBytes
    receivedAt = Math.max(receivedAt, event.receivedAt)
  }
  return [publicId, events.length, bytes, receivedAt]
}

export function placeholders(first: number, count: number): string {
  return Array.from({ length: count }, (_, i) => `$${first + i}`).join(', ')
}
