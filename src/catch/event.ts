/** What an event is: a request as it is kept, and a row as it is shown. */
import { isUtf8 } from 'node:buffer'
import { rfc3339 } from '../lib/clock.ts'
import { containsToken } from '../lib/ids.ts'
import { eventId } from './event-id.ts'
import type { CatchEvent } from './schema.ts'
import type { EventRow } from './store.ts'

/**
 * The headers as sent and in order, but for what would hand our secrets to whoever reads them
 * later, and for what a proxy of ours added.
 */
export function storedHeaders(
  { rawHeaders, isProxied }: { rawHeaders: string[]; isProxied: boolean },
  isForwardingHeader: (name: string) => boolean,
): { name: string; value: string }[] {
  const headers: { name: string; value: string }[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    const value = rawHeaders[i + 1] ?? ''
    if (isProxied && isForwardingHeader(name.toLowerCase())) continue
    if (isSecret(name, value)) continue
    headers.push({ name, value })
  }
  return headers
}

/**
 * An event as its owner sees it, in JSON, as `CatchEvent` describes it. Put together from what the
 * store has: headers and place are JSON there already, and a page of events is asked for again and
 * again. What came from outside, or may need escaping, is quoted by JSON.stringify.
 */
export function eventJson(row: EventRow): string {
  const body = bodyOf(row)
  const encoding: CatchEvent['bodyEncoding'] = isUtf8(body) ? 'utf8' : 'base64'
  return (
    `{"id":"${eventId(row)}","sequence":${row.sequence},"receivedAt":"${rfc3339(row.received_at)}",` +
    `"access":"${row.access}","method":${JSON.stringify(row.method)},` +
    `"path":${JSON.stringify(row.path)},"query":${JSON.stringify(row.query)},` +
    `"headers":${row.headers},"contentType":${JSON.stringify(row.content_type)},` +
    `"body":${JSON.stringify(body.toString(encoding))},"bodyEncoding":"${encoding}",` +
    `"bodyBytes":${row.body_bytes},"bodySha256":"${row.body_sha256}",` +
    `"sourceIp":${JSON.stringify(row.source_ip)},"ipLocation":${row.ip_location}}`
  )
}

/** The body of an event, byte for byte. */
export function bodyOf({ body }: EventRow): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

/** Credentials that the request came with, and ours wherever they stand. */
function isSecret(name: string, value: string): boolean {
  if (containsToken(value) || CREDENTIAL.test(value)) return true
  return AUTHORIZATION.has(name.toLowerCase()) && PAYMENT_SCHEME.test(value)
}

const AUTHORIZATION = new Set(['authorization', 'payment-authorization', 'proxy-authorization'])
const PAYMENT_SCHEME = /^\s*(?:Payment|L402|LSAT)\b/i
/** One long token after the scheme: a header that only speaks of a payment is kept. */
const CREDENTIAL = /^\s*(?:Payment|L402|LSAT)\s+[A-Za-z0-9+/_=-]{12,}(?::[0-9a-fA-F]*)?\s*$/i
