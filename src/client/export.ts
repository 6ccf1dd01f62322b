/** Events in the formats of other tools: curl, HAR and JSON lines. Pure functions. */
import type { CatchEvent } from '../catch/schema.ts'
import { base64, base64Bytes, utf8 } from '../lib/bytes.ts'

/** Longer bodies go through a pipe: Linux takes 128 KiB as one argument. */
const MAX_ARGUMENT_CHARS = 32 * 1024

/** What belongs to the connection or is computed from the body; curl writes its own. */
const COMPUTED = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** What curl would add of itself, and is taken away where the sender sent none. */
const CURL_ADDS = ['Accept', 'User-Agent']
/** Control characters survive neither a terminal nor every shell. */
const UNTYPEABLE = /[^\n\P{Cc}]/u

/**
 * The body of an event, byte for byte.
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
 * Where an event is sent when it is sent again: its own path and query below this address.
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
 * A command for a POSIX shell that sends the event again, with its method, headers and body: a body
 * that is no plain text goes through `base64 -d`. `url` is as in `eventUrl`.
 *
 * ```ts
 * toCurl(event, { url: 'http://localhost:3000/hook' })
 * ```
 */
export function toCurl(event: CatchEvent, { url }: { url: string }): string {
  const { method, body, bodyEncoding, bodyBytes } = event
  const headers = event.headers.filter(({ name, value }) => !isComputed(name) && isOneLine(value))
  const has = (wanted: string): boolean =>
    headers.some(({ name }) => name.toLowerCase() === wanted.toLowerCase())
  // A HEAD by any other name makes curl wait for a body.
  const isHead = method === 'HEAD' && bodyBytes === 0
  const words = ['curl --globoff --path-as-is', isHead ? '--head' : `--request ${quote(method)}`]
  for (const { name, value } of headers) {
    words.push(`--header ${quote(value === '' ? `${name};` : `${name}: ${value}`)}`)
  }
  const added = bodyBytes > 0 ? [...CURL_ADDS, 'Content-Type'] : CURL_ADDS
  for (const name of added) if (!has(name)) words.push(`--header ${quote(`${name}:`)}`)
  const isTyped =
    bodyEncoding === 'utf8' && body.length <= MAX_ARGUMENT_CHARS && !UNTYPEABLE.test(body)
  if (bodyBytes > 0) words.push(isTyped ? `--data-raw ${quote(body)}` : '--data-binary @-')
  words.push(`--url ${quote(eventUrl(event, url))}`)
  const command = words.join(' \\\n  ')
  if (isTyped || bodyBytes === 0) return command
  return `printf %s ${quote(base64(eventBody(event)))} | base64 -d | ${command}`
}

/** What made the file, for its `creator`. */
const CREATOR = { name: 'mayfly', version: '1' }

/**
 * The events as an HTTP Archive (HAR 1.2), in the order that is given. The answer of each is the
 * 204 that its sender got; a body that is no text is base64, which `_encoding` says. `url` is as in
 * `eventUrl`.
 *
 * ```ts
 * const har = toHar(events, { url: `${baseUrl}/c/${inbox.publicId}` })
 * ```
 */
export function toHar(events: Iterable<CatchEvent>, { url }: { url: string }): string {
  const entries = [...events].map((event) => harEntry(event, eventUrl(event, url)))
  return `${JSON.stringify({ log: { version: '1.2', creator: CREATOR, entries } }, null, 2)}\n`
}

/**
 * The events as JSON lines, one a line, exactly as the service tells them.
 *
 * ```ts
 * const text = toJsonLines(page.events)
 * ```
 */
export function toJsonLines(events: Iterable<CatchEvent>): string {
  return [...events].map((event) => `${JSON.stringify(event)}\n`).join('')
}

function harEntry(event: CatchEvent, url: string): unknown {
  const { receivedAt, method, headers, query, bodyBytes } = event
  return {
    startedDateTime: receivedAt,
    time: 0,
    request: {
      method,
      url,
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
  }
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

/** A header with a line break in it would be two, which no sender sent. */
const isOneLine = (value: string): boolean => !/[\r\n\0]/.test(value)

/** One word for a POSIX shell, whatever is in it. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
