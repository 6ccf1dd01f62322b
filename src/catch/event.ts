/** An event as it is shown. */
import { isUtf8 } from 'node:buffer'
import { rfc3339 } from '../lib/clock.ts'
import { eventId } from './event-id.ts'
import type { EventRow } from './event-store.ts'
import { contentTypeOf, headersJson } from './kept.ts'
import type { CatchEvent } from './schema.ts'

/**
 * An event as its owner sees it, in JSON, as `CatchEvent` describes it. Put together from what the
 * store has, where the place is JSON already. What came from outside, or may need escaping, is quoted
 * by JSON.stringify.
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
 * A body in JSON: as text where it is some, else as base64. Control characters are text as well, and
 * become six bytes each; a body that base64 shows shorter than that is shown so.
 */
function shownBody(bytes: Buffer): { body: string; encoding: CatchEvent['bodyEncoding'] } {
  if (isUtf8(bytes) && !(bytes.length > SCANNED_FROM_BYTES && isCostly(bytes))) {
    const text = bytes.toString('utf8')
    const body = JSON.stringify(text)
    // What escaping adds, quotes and line ends included: most bodies need no closer look.
    const added = body.length - text.length
    if (added * 3 <= bytes.length + SMALL_CHANGE_BYTES || !isCostly(bytes)) {
      return { body, encoding: 'utf8' }
    }
  }
  return { body: `"${bytes.toString('base64')}"`, encoding: 'base64' }
}

/** Larger bodies are looked at before they are escaped, which may take six times as much. */
const SCANNED_FROM_BYTES = 16 * 1024
/** A body that is no longer than this is shown as the text that it is. */
const SMALL_CHANGE_BYTES = 64

/** Whether its control characters add more than base64 does, a third. Quotes and line ends are text. */
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
