/** What is kept of a request to an inbox, in what form, and how much of the inbox's storage it takes. */
import type { Value } from '../db/db.ts'
import { containsToken } from '../lib/ids.ts'

/**
 * A request with more header lines is refused. Each line costs a few bytes that `keptBytes` does not
 * count, and its owner some twenty in JSON, so that lines are bounded as well as bytes.
 */
export const MAX_HEADER_LINES = 256

/** Names and values in turn, as Node's `rawHeaders`: each character is one byte of the request. */
export type FlatHeaders = string[]

/**
 * How many bytes of its inbox's storage a request takes: its body, path and query, and the names and
 * values of the headers that are kept, each as long as it was on the wire. What stands between them
 * (`: `, the ends of lines, the question mark) is not counted, nor is what the service adds.
 */
export function keptBytes(request: {
  path: string
  query: string
  headers: FlatHeaders
  body: { length: number }
}): number {
  let bytes = request.body.length + request.path.length + request.query.length
  for (const part of request.headers) bytes += part.length
  return bytes
}

/**
 * The headers as sent and in order, but for what would hand our secrets to whoever reads them
 * later, and for what a proxy of ours added.
 */
export function keptHeaders(
  { rawHeaders, isProxied }: { rawHeaders: string[]; isProxied: boolean },
  isForwardingHeader: (name: string) => boolean,
): FlatHeaders {
  const headers: FlatHeaders = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    const value = rawHeaders[i + 1] ?? ''
    if (isProxied && isForwardingHeader(name.toLowerCase())) continue
    if (isSecret(name, value)) continue
    headers.push(name, value)
  }
  return headers
}

/**
 * Headers in as many bytes as they came in, and two for each line. Node's parser lets no colon into a
 * name and no line feed into a value.
 */
export function packHeaders(headers: FlatHeaders): Buffer {
  let lines = ''
  for (let i = 0; i + 1 < headers.length; i += 2) lines += `${headers[i]}:${headers[i + 1]}\n`
  return Buffer.from(lines, 'latin1')
}

/** A row as far as its headers go. */
export type HeaderColumns = {
  headers: string
  header_lines: Uint8Array | null
  content_type: string | null
} & Record<string, Value>

/** The headers of an event in JSON, a list of `{name, value}`. */
export function headersJson({ headers, header_lines }: HeaderColumns): string {
  if (header_lines === null) return headers
  const shown = linesOf(header_lines).map(
    ([name, value]) => `{"name":${JSON.stringify(name)},"value":${JSON.stringify(value)}}`,
  )
  return `[${shown.join(',')}]`
}

/** The longest content type that has a column of its own, and the longest that a filter can name. */
export const MAX_TYPE_COLUMN = 255

/** The first content type among headers, or null. */
export function contentTypeIn(headers: FlatHeaders): string | null {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (isContentType(headers[i] ?? '')) return headers[i + 1] ?? null
  }
  return null
}

/** What goes into a column beside the headers: a long type would be stored twice. */
export const columnOf = (type: string | null): string | null =>
  type !== null && type.length > MAX_TYPE_COLUMN ? null : type

/** The content type of an event: from its column, or from its headers where it was long. */
export function contentTypeOf({ content_type, header_lines }: HeaderColumns): string | null {
  if (content_type !== null || header_lines === null) return content_type
  // So many bytes hold no long type.
  if (header_lines.length <= MAX_TYPE_COLUMN) return null
  return linesOf(header_lines).find(([name]) => isContentType(name))?.[1] ?? null
}

function linesOf(packed: Uint8Array): [name: string, value: string][] {
  const lines = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength)
    .toString('latin1')
    .split('\n')
  // Each line ends in a line feed: what follows the last one is nothing.
  lines.pop()
  return lines.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1)]
  })
}

const isContentType = (name: string): boolean =>
  name.length === 12 && name.toLowerCase() === 'content-type'

/** Credentials that the request came with, and ours wherever they stand. */
function isSecret(name: string, value: string): boolean {
  if (containsToken(value) || CREDENTIAL.test(value)) return true
  const field = name.toLowerCase()
  return field === PREIMAGE || (AUTHORIZATION.has(field) && PAYMENT_SCHEME.test(value))
}

const AUTHORIZATION = new Set(['authorization', 'payment-authorization', 'proxy-authorization'])
/** Proves a payment by itself, whatever stands in it. */
const PREIMAGE = 'payment-preimage'
const PAYMENT_SCHEME = /^\s*(?:Payment|L402|LSAT)\b/i
/** One long token after the scheme: a header that only speaks of a payment is kept. */
const CREDENTIAL = /^\s*(?:Payment|L402|LSAT)\s+[A-Za-z0-9+/_=-]{12,}(?::[0-9a-fA-F]*)?\s*$/i
