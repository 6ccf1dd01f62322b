/** The JSON of an event. */
import { isUtf8 } from 'node:buffer'
import { rfc3339 } from '../lib/clock.ts'
import { eventId } from './event-id.ts'
import type { EventRow } from './event-rows.ts'
import { contentTypeOf, headersJson } from './kept.ts'
import type { CatchEvent } from './schema.ts'

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
