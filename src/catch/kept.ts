/** The parts of a request that an inbox stores, their form, and the storage they use. */
import { mediaType } from '../lib/event-filters.ts'
import { containsToken } from '../lib/ids.ts'

/**
 * A request with more header lines is refused. Each line costs a few bytes in the store that
 * `keptBytes` does not count, and about twenty in JSON, so the count of lines needs a limit too.
 */
export const MAX_HEADER_LINES = 256

/** Names and values alternate, as in Node's `rawHeaders`. Each character is one byte of the request. */
export type FlatHeaders = string[]

/**
 * The bytes of storage that a request uses: its body, path and query, and the names and values of the
 * headers that are kept, each at its length on the wire. Separators (`: `, line ends, the question
 * mark) do not count, nor does what the service adds.
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
 * The headers as sent and in order, without those that our own proxies added, and without those
 * whose value would give the sender's credentials to later readers.
 */
export function keptHeaders(
  { rawHeaders, isProxied }: { rawHeaders: string[]; isProxied: boolean },
  forwardingHeaders: ReadonlySet<string>,
): FlatHeaders {
  const headers: FlatHeaders = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    const value = rawHeaders[i + 1] ?? ''
    if (isProxied && forwardingHeaders.has(name.toLowerCase())) continue
    if (isSecret(name, value)) continue
    headers.push(name, value)
  }
  return headers
}

/**
 * Headers as bytes: those of the request, plus two for each line. The separators are unambiguous,
 * since Node's parser refuses a colon in a name and a line feed in a value.
 */
export function packHeaders(headers: FlatHeaders): Buffer {
  let lines = ''
  for (let i = 0; i + 1 < headers.length; i += 2) lines += `${headers[i]}:${headers[i + 1]}\n`
  return Buffer.from(lines, 'latin1')
}

/** The column of an event that holds its headers. */
type HeaderColumn = { header_lines: Uint8Array }

/** The headers of an event in JSON, a list of `{name, value}`. */
export function headersJson({ header_lines }: HeaderColumn): string {
  const text = textOf(header_lines)
  // Asked once for all lines, because quoting each of them takes most of the time.
  const quoted = NEEDS_ESCAPES.test(text) ? JSON.stringify : inQuotes
  let shown = ''
  for (const [name, value] of linesOf(text)) {
    shown += `${shown === '' ? '' : ','}{"name":${quoted(name)},"value":${quoted(value)}}`
  }
  return `[${shown}]`
}

/** The names and values of the headers of an event. */
export const headersOf = ({ header_lines }: HeaderColumn): [name: string, value: string][] =>
  linesOf(textOf(header_lines))

/** What JSON escapes of one-byte characters, except for the line feed, which ends a line here. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that JSON escapes
const NEEDS_ESCAPES = /["\\\u0000-\u0009\u000b-\u001f]/

const inQuotes = (text: string): string => `"${text}"`

/** The first content type among the headers of an event, as sent, or null. */
export const contentTypeOf = ({ header_lines }: HeaderColumn): string | null =>
  CONTENT_TYPE.exec(textOf(header_lines))?.[1] ?? null

const CONTENT_TYPE = /^content-type:([^\n]*)/im

/** The longest media type that is stored, and that a filter accepts. */
const MAX_MEDIA_TYPE = 255

/** What an event is filtered by: the media type of the first content type among the headers that are kept. */
export function mediaTypeIn(headers: FlatHeaders): string | null {
  const at = headers.findIndex(isContentType)
  const type = at < 0 ? null : mediaType(headers[at + 1] ?? null)
  return type === null || type.length > MAX_MEDIA_TYPE ? null : type
}

/** Every other text is a value. Hot, so that the length is asked first. */
const isContentType = (text: string, place: number): boolean =>
  text.length === 12 && place % 2 === 0 && text.toLowerCase() === 'content-type'

const textOf = (packed: Uint8Array): string =>
  Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength).toString('latin1')

function linesOf(text: string): [name: string, value: string][] {
  const lines: [string, string][] = []
  for (let from = 0; from < text.length; ) {
    const colon = text.indexOf(':', from)
    const end = text.indexOf('\n', colon)
    lines.push([text.slice(from, colon), text.slice(colon + 1, end)])
    from = end + 1
  }
  return lines
}

/** Headers that carry credentials by name, and any header whose value is one of our credentials. */
function isSecret(name: string, value: string): boolean {
  if (containsToken(value) || CREDENTIAL.test(value)) return true
  const field = name.toLowerCase()
  return field === PREIMAGE || (AUTHORIZATION.has(field) && PAYMENT_SCHEME.test(value))
}

const AUTHORIZATION = new Set(['authorization', 'payment-authorization', 'proxy-authorization'])
/** Any value of this header may prove a payment. */
const PREIMAGE = 'payment-preimage'
const PAYMENT_SCHEME = /^\s*(?:Payment|L402|LSAT)\b/i
/** A scheme followed by one long token. Headers that merely mention a payment do not match. */
const CREDENTIAL = /^\s*(?:Payment|L402|LSAT)\s+[A-Za-z0-9+/_=-]{12,}(?::[0-9a-fA-F]*)?\s*$/i
