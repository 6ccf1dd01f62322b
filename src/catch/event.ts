/** An event as it is stored, its id, and its JSON. */
import { isUtf8 } from 'node:buffer'
import type { Row, RowMap } from '../db/db.ts'
import { rfc3339 } from '../lib/clock.ts'
import { contentTypeOf, headersJson } from './kept.ts'
import type { Access, CatchEvent } from './schema.ts'

export type EventRow = {
  sequence: number
  salt: number
  received_at: number
  access: Access
  method: string
  path: string
  query: string
  header_lines: Uint8Array
  body: Uint8Array
  body_bytes: number
  body_sha256: string
  source_ip: string
  ip_location: string | null
} & Row

/** An event, and an upper bound of the bytes of its columns. The body of one that was not read is null. */
export type SizedRow = EventRow & { size: number }

/** An event in JSON, and an upper bound of the bytes of its columns. Of one that was not read there is no JSON. */
export type JsonRow = { sequence: number; size: number; json: Uint8Array | null } & Row

/**
 * A `CatchEvent` in JSON, concatenated from its columns. The location is stored as JSON. Text from
 * outside, and any that may need escaping, is quoted by JSON.stringify.
 */
export function eventJson(row: EventRow): string {
  const { body, encoding } = shownBody(bodyOf(row))
  return (
    `{"id":"${eventId(row)}","sequence":${row.sequence},"receivedAt":"${rfc3339(row.received_at)}",` +
    `"access":"${row.access}","method":${JSON.stringify(row.method)},` +
    `"path":${JSON.stringify(row.path)},"query":${JSON.stringify(row.query)},` +
    `"headers":${headersJson(row)},"contentType":${JSON.stringify(contentTypeOf(row))},` +
    `"body":${body},"bodyEncoding":"${encoding}",` +
    `"bodyBytes":${row.body_bytes},"bodySha256":"${row.body_sha256}",` +
    `"sourceIp":${JSON.stringify(row.source_ip)},"ipLocation":${row.ip_location}}`
  )
}

/**
 * A body in JSON: UTF-8 as text, anything else as base64. JSON escapes a control character with six
 * bytes, so a text with many of them is base64 too if that is shorter.
 */
function shownBody(bytes: Buffer): { body: string; encoding: CatchEvent['bodyEncoding'] } {
  if (isUtf8(bytes) && !(bytes.length > SCANNED_FROM_BYTES && isCostly(bytes))) {
    const text = bytes.toString('utf8')
    const body = JSON.stringify(text)
    // All that escaping adds. If it is little, which is usual, control characters need no count.
    const added = body.length - text.length
    if (added * 3 <= bytes.length + SMALL_CHANGE_BYTES || !isCostly(bytes)) {
      return { body, encoding: 'utf8' }
    }
  }
  return { body: `"${bytes.toString('base64')}"`, encoding: 'base64' }
}

/** Larger bodies are checked before they are escaped, since that may need six times their memory. */
const SCANNED_FROM_BYTES = 16 * 1024
/** Slack in the comparison with base64: a few control characters leave a small body a text. */
const SMALL_CHANGE_BYTES = 64

/** Whether escaped control characters add more than base64 does, a third. */
function isCostly(bytes: Buffer): boolean {
  const most = (bytes.length + SMALL_CHANGE_BYTES) / 3 / 5
  let controls = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (byte < 0x20 && (byte < 0x08 || byte === 0x0b || byte > 0x0d) && ++controls > most)
      return true
  }
  return false
}

/** The body of an event, byte for byte. */
export function bodyOf({ body }: EventRow): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

/** Each event in JSON, made in the thread that has read it. */
export const EVENTS_JSON: RowMap = {
  module: import.meta.url,
  name: 'eventsJson',
  map: eventsJson,
}

export function eventsJson(rows: Row[]): JsonRow[] {
  return (rows as SizedRow[]).map((row) => ({
    sequence: row.sequence,
    size: row.size,
    json: row.body === null ? null : Buffer.from(eventJson(row)),
  }))
}

// Event ids are UUIDv7 (RFC 9562 §5.7): the time of arrival, 26 random bits, and in the last 48 bits the sequence, as the
// counter that §6.2 allows. The sequence finds the row, so event ids need no index of their own.

const EVENT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** `salt` is a 26-bit random number, `received_at` unix milliseconds. */
export function eventId(event: { received_at: number; salt: number; sequence: number }): string {
  const { received_at: time, salt, sequence } = event
  const randA = 0x7000 | (salt & 0xfff)
  const randB = 0x8000 | (salt >>> 12)
  return (
    `${hex4(time / 2 ** 32)}${hex4(time >>> 16)}-${hex4(time)}-${hex4(randA)}-${hex4(randB)}-` +
    `${hex4(sequence / 2 ** 32)}${hex4(sequence >>> 16)}${hex4(sequence)}`
  )
}

/** The last 16 bits as four hex digits, which is faster than padding what `toString` makes. */
const hex4 = (number: number): string => `${HEX[(number >>> 8) & 0xff]}${HEX[number & 0xff]}`
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** The sequence in an event id, or null for text that is not an event id. */
export function parseEventId(id: string): { sequence: number } | null {
  return EVENT_ID.test(id) ? { sequence: Number.parseInt(id.slice(-12), 16) } : null
}
