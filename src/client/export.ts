/** Formats events for other tools: curl, HAR and JSON lines. Pure functions. */
import type { CatchEvent } from '../catch/schema.ts'
import { base64, base64Bytes, utf8 } from '../lib/bytes.ts'
import { HOP_BY_HOP } from '../lib/hop-by-hop.ts'
import { hasInvisible } from '../lib/invisible.ts'

/** Longer bodies are piped, since Linux limits one argument to 128 KiB. */
const MAX_ARGUMENT_CHARS = 32 * 1024

/** Headers that belong to the connection or are computed from the body. curl sets its own. */
const COMPUTED = new Set<string>([...HOP_BY_HOP, 'content-length', 'expect', 'host'])
/** Headers that curl adds by default. They are removed if the sender did not send them. */
const CURL_ADDS = ['Accept', 'User-Agent']
/**
 * The bytes of an event's body.
 *
 * ```ts
 * const bytes = eventBody(event) // event.body may be text or base64
 * ```
 */
export function eventBody({ body, bodyEncoding }: CatchEvent): Uint8Array<ArrayBuffer> {
  if (bodyEncoding === 'utf8') return utf8(body)
  const bytes = base64Bytes(body)
  if (bytes === null) throw new RangeError('the body is not base64')
  return bytes
}

/**
 * The URL to which an event is sent again: its path and query appended to this address.
 *
 * ```ts
 * eventUrl(event, 'http://localhost:3000/hook') // http://localhost:3000/hook/github?delivery=1
 * ```
 */
export function eventUrl({ path, query }: CatchEvent, url: string): string {
  const base = path.startsWith('/') ? url.replace(/\/+$/, '') : url
  return `${base}${path}${query === '' ? '' : `?${query}`}`
}

/**
 * A curl command for a POSIX shell that sends the event again, with its method, headers and body. A
 * binary body is piped through `base64 -d`. `url` is as in `eventUrl`.
 *
 * ```ts
 * toCurl(event, { url: 'http://localhost:3000/hook' })
 * ```
 */
export function toCurl(event: CatchEvent, { url }: { url: string }): string {
  const { method, body, bodyBytes } = event
  const headers = repeatableHeaders(event)
  // With `--request HEAD`, curl would wait for a body.
  const isHead = method === 'HEAD' && bodyBytes === 0
  const words = ['curl --globoff --path-as-is', isHead ? '--head' : `--request ${quote(method)}`]
  for (const { name, value } of headers) {
    words.push(`--header ${quoteBytes(value === '' ? `${name};` : `${name}: ${value}`)}`)
  }
  for (const name of unsent(event)) words.push(`--header ${quote(`${name}:`)}`)
  const isTyped = isTypeable(event)
  if (bodyBytes > 0) words.push(isTyped ? `--data-raw ${quote(body)}` : '--data-binary @-')
  words.push(`--url ${quote(eventUrl(event, url))}`)
  const command = words.join(' \\\n  ')
  if (isTyped || bodyBytes === 0) return command
  return `printf %s ${quote(base64(eventBody(event)))} | base64 -d | ${command}`
}

/** The headers that a command repeats, in their order. */
function repeatableHeaders({ headers }: CatchEvent): CatchEvent['headers'] {
  return headers.filter(({ name, value }) => !isComputed(name) && isOneLine(value))
}

/** The headers that curl would add and the sender did not send. */
function unsent(event: CatchEvent): string[] {
  const names = event.bodyBytes > 0 ? [...CURL_ADDS, 'Content-Type'] : CURL_ADDS
  const sent = new Set(repeatableHeaders(event).map(({ name }) => name.toLowerCase()))
  return names.filter((name) => !sent.has(name.toLowerCase()))
}

/** Whether the body can be an argument of a command. Others are piped to it. */
function isTypeable({ body, bodyEncoding }: CatchEvent): boolean {
  return (
    bodyEncoding === 'utf8' &&
    body.length <= MAX_ARGUMENT_CHARS &&
    !hasInvisible(body, { keep: '\n' })
  )
}

/** The HAR file's `creator`. */
const CREATOR = { name: 'mayfly', version: '1' }

/**
 * The events as an HTTP Archive (HAR 1.2), in the given order. Each response is the 204 that its
 * sender got. A binary body is base64, with `_encoding` set. `url` is as in `eventUrl`.
 *
 * ```ts
 * const har = toHar(events, { url: `${baseUrl}/c/${inbox.publicId}` })
 * ```
 */
export function toHar(events: Iterable<CatchEvent>, { url }: { url: string }): string {
  const entries = [...events].map((event) => harEntry(event, url))
  return `${HAR_START}${entries.join(HAR_BETWEEN)}${HAR_END}`
}

/** What stands around the entries of a HAR file, which may be too many for one text. */
export const HAR_START = `{"log":{"version":"1.2","creator":${JSON.stringify(CREATOR)},"entries":[\n`
export const HAR_BETWEEN = ',\n'
export const HAR_END = '\n]}}\n'

/**
 * The events as JSON lines: one event per line, as the service sent it.
 *
 * ```ts
 * const text = toJsonLines(page.events)
 * ```
 */
export function toJsonLines(events: Iterable<CatchEvent>): string {
  return [...events].map((event) => `${JSON.stringify(event)}\n`).join('')
}

/** One entry of a HAR file, as JSON. */
export function harEntry(event: CatchEvent, url: string): string {
  const { receivedAt, method, headers, query, bodyBytes } = event
  return JSON.stringify({
    startedDateTime: receivedAt,
    time: 0,
    request: {
      method,
      url: eventUrl(event, url),
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: headers.map(({ name, value }) => ({ name, value })),
      queryString: [...new URLSearchParams(query)].map(([name, value]) => ({ name, value })),
      ...(bodyBytes === 0 ? {} : { postData: harBody(event) }),
      headersSize: -1,
      bodySize: bodyBytes,
    },
    response: {
      status: 204,
      statusText: 'No Content',
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: [],
      content: { size: 0, mimeType: 'x-unknown' },
      redirectURL: '',
      headersSize: -1,
      bodySize: 0,
    },
    cache: {},
    timings: { send: 0, wait: 0, receive: 0 },
    _mayfly: { id: event.id, sequence: event.sequence, access: event.access },
  })
}

function harBody({ contentType, body, bodyEncoding }: CatchEvent): unknown {
  return {
    mimeType: contentType ?? 'application/octet-stream',
    params: [],
    text: body,
    ...(bodyEncoding === 'base64' ? { _encoding: 'base64' } : {}),
  }
}

const isComputed = (name: string): boolean => COMPUTED.has(name.toLowerCase())

/** Whether a header is one line. A line break would make it two. */
const isOneLine = (value: string): boolean => !/[\r\n\0]/.test(value)

const ASCII = /^[\t\x20-\x7e]*$/

/** Quotes a text as one word for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * Quotes what was sent, a character per byte, as one word for a POSIX shell. A terminal would send a character
 * beyond ASCII as its two bytes of UTF-8, so `printf` makes it.
 */
function quoteBytes(latin1: string): string {
  if (ASCII.test(latin1)) return quote(latin1)
  const format = latin1.replaceAll(/[^\x20-\x7e]|['\\]/g, (character) => {
    return `\\${(character.charCodeAt(0) & 0xff).toString(8).padStart(3, '0')}`
  })
  return `"$(printf '${format.replaceAll('%', '%%')}')"`
}
