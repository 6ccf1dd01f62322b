/** Writes events as code that sends them again: fetch, HTTPie and Python. Pure functions. */
import type { CatchEvent } from '../catch/schema.ts'
import { base64 } from '../lib/bytes.ts'
import {
  eventBody,
  eventUrl,
  isTypeable,
  pipedBody,
  quote,
  repeatableHeaders,
  unsent,
} from './export.ts'

/** Methods that `fetch` refuses (Fetch Standard §2.2.1). */
const FORBIDDEN_METHOD = /^(?:connect|trace|track)$/i
/** Segments that `fetch` resolves before it sends. */
const DOT_SEGMENT = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i
const HTTPIE_ADDS = ['Accept', 'Accept-Encoding', 'User-Agent']
/** HTTPie would drop the backslash. */
const UNESCAPABLE = /\\[:;=@]/
const NOT_ASCII = /[^\t\x20-\x7e]/

/**
 * JavaScript that sends the event again with `fetch`. A comment says what `fetch` does not allow. `url`
 * is as in `eventUrl`.
 *
 * ```ts
 * toFetch(event, { url: 'http://localhost:3000/hook' })
 * ```
 */
export function toFetch(event: CatchEvent, { url }: { url: string }): string {
  const { method, path, bodyBytes } = event
  const isBodiless = /^(?:get|head)$/i.test(method)
  const notes = [
    FORBIDDEN_METHOD.test(method) && `// fetch refuses the method ${method}.`,
    DOT_SEGMENT.test(path) && '// fetch resolves the dots in this path before it sends.',
    isBodiless && bodyBytes > 0 && `// fetch sends no body with ${method}, so it is left out.`,
  ].filter((note) => note !== false)
  const headers = repeatableHeaders(event).map(
    ({ name, value }) => `    [${literal(name)}, ${literal(value)}],\n`,
  )
  const body = bodyBytes > 0 && !isBodiless ? `  body: ${fetchBody(event)},\n` : ''
  return [
    ...notes,
    `await fetch(${literal(eventUrl(event, url))}, {`,
    `  method: ${literal(method)},`,
    `  headers: [\n${headers.join('')}  ],`,
    `${body}})`,
  ].join('\n')
}

/**
 * An HTTPie command for a POSIX shell that sends the event again. A comment names the headers that HTTPie
 * cannot send. `url` is as in `eventUrl`.
 *
 * ```ts
 * toHttpie(event, { url: 'http://localhost:3000/hook' })
 * ```
 */
export function toHttpie(event: CatchEvent, { url }: { url: string }): string {
  const headers = repeatableHeaders(event)
  const sent = headers.filter(({ value }) => !UNESCAPABLE.test(value) && !NOT_ASCII.test(value))
  const left = headers.filter((header) => !sent.includes(header)).map(({ name }) => name)
  const isTyped = isTypeable(event)
  const isPiped = event.bodyBytes > 0 && !isTyped
  const words = [
    `http --path-as-is${isPiped ? '' : ' --ignore-stdin'} ${quote(event.method)}`,
    quote(eventUrl(event, url)),
    // A value that begins like another kind of item would be one, such as a file that is read.
    ...sent.map(({ name, value }) =>
      quote(value === '' ? `${name};` : `${name}:${value.replace(/^[:;=@]/, '\\$&')}`),
    ),
    ...unsent(event, HTTPIE_ADDS).map((name) => quote(`${name}:`)),
    ...(event.bodyBytes > 0 && isTyped ? [`--raw ${quote(event.body)}`] : []),
  ]
  const note = left.length > 0 ? `# HTTPie cannot send the value of ${left.join(', ')}.\n` : ''
  return `${note}${isPiped ? pipedBody(event) : ''}${words.join(' \\\n  ')}`
}

/**
 * A program in Python 3 that sends the event again, with its standard library alone. `url` is as in
 * `eventUrl`.
 *
 * ```ts
 * toPython(event, { url: 'http://localhost:3000/hook' })
 * ```
 */
export function toPython(event: CatchEvent, { url }: { url: string }): string {
  const { protocol, hostname, port } = new URL(url)
  const whole = eventUrl(event, url)
  const target = whole.slice(whole.indexOf('/', whole.indexOf('//') + 2))
  const kind = protocol === 'https:' ? 'HTTPSConnection' : 'HTTPConnection'
  const at = [literal(hostname.replace(/^\[|\]$/g, '')), ...(port === '' ? [] : [port])].join(', ')
  const isText = isTypeable(event)
  const { bodyBytes } = event
  const body = isText
    ? `b${bytesLiteral(eventBody(event))}`
    : `base64.b64decode(${literal(base64(eventBody(event)))})`
  return [
    ...(bodyBytes > 0 && !isText ? ['import base64'] : []),
    'import http.client',
    '',
    ...(bodyBytes > 0 ? [`body = ${body}`] : []),
    `connection = http.client.${kind}(${at})`,
    `connection.putrequest(${literal(event.method)}, ${literal(target)}, skip_accept_encoding=True)`,
    ...repeatableHeaders(event).map(
      ({ name, value }) => `connection.putheader(${literal(name)}, ${literal(value)})`,
    ),
    ...(bodyBytes > 0 ? ['connection.putheader("Content-Length", str(len(body)))'] : []),
    `connection.endheaders(${bodyBytes > 0 ? 'body' : ''})`,
    'print(connection.getresponse().status)',
  ].join('\n')
}

function fetchBody(event: CatchEvent): string {
  if (isTypeable(event)) return literal(event.body)
  return `Uint8Array.from(atob(${literal(base64(eventBody(event)))}), (byte) => byte.charCodeAt(0))`
}

/** A text in JavaScript and in Python. What is not visible ASCII is escaped, so that code shows what it does. */
function literal(text: string): string {
  const escaped = text.replaceAll(/[^\x20-\x7e]|["\\]/g, (character) => {
    if (character === '"' || character === '\\') return `\\${character}`
    if (character === '\n') return '\\n'
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
  return `"${escaped}"`
}

/** Bytes as the text of Python's `b"…"`. */
function bytesLiteral(bytes: Uint8Array): string {
  const shown = Array.from(bytes, (byte) => {
    if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`
    if (byte === 10) return '\\n'
    const isVisible = byte >= 0x20 && byte < 0x7f
    return isVisible ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`
  })
  return `"${shown.join('')}"`
}
