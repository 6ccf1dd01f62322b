/** One captured request, sent again to a receiver: method, path, query, headers and bytes as they were. */
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { type CatchEvent, eventBody } from '../client/index.ts'
import { HOP_BY_HOP } from '../lib/hop-by-hop.ts'
import { CliError, EXIT } from './exit.ts'

/** How long a receiver may take to answer. */
const ANSWER_MS = 30_000
/** The pause after a try that brought nothing: the first, doubled each time up to the most. */
const FIRST_PAUSE_MS = 250
const MAX_PAUSE_MS = 10_000

/** RFC 9110 §7.6.1, and what the next hop says for itself. */
const DROPPED = new Set<string>([...HOP_BY_HOP, 'content-length', 'expect', 'host'])

/**
 * A step up in a path, in the spellings that servers read as one: what a stranger sent to an inbox
 * stays below the address that the receiver was named with. A path ends at `?` and `#`, also where these
 * are sent as they are.
 */
const STEP_UP = /(?:^|[/\\]|%2f|%5c)(?:\.|%2e){2}(?=$|[/\\;?#]|%2f|%5c|%3b|%3f|%23)/i

/**
 * The receiver's answer. Its status is null where none came though the request was sent: it was late,
 * or the receiver hung up. It is null, too, for what is never sent, `isRefused`.
 */
export type Forwarded = {
  status: number | null
  durationMs: number
  isLate?: boolean
  isRefused?: true
  error?: string
}

/** A receiver's address. @throws CliError for anything but http and https. */
export function receiverOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url && /^https?:$/.test(url.protocol)) return url
  throw new CliError(
    'The receiver must be an http or https URL, such as http://localhost:3000/hook',
    EXIT.usage,
  )
}

export type Receiving = {
  to: URL
  /** Called just before the last byte of the request, or all of one without a body, is sent. */
  onSent(): void
}

/**
 * Sends it once, on a connection of its own: on a shared one, a receiver that closes it just then
 * leaves open whether it got the request. Rejects where it was not sent whole.
 */
export function forward(event: CatchEvent, { to, onSent }: Receiving): Promise<Forwarded> {
  if (STEP_UP.test(event.path)) return Promise.resolve(REFUSED)
  const body = eventBody(event)
  const begun = performance.now()
  const took = (): number => Math.round(performance.now() - begun)
  let isSent = false
  let isLate = false
  return new Promise((resolve, reject) => {
    const send = to.protocol === 'https:' ? requestHttps : requestHttp
    const request = send(to, {
      method: event.method,
      path: pathOf(to, event),
      headers: headersOf(to, event, body),
      agent: false,
      timeout: ANSWER_MS,
    })
    /** What makes the request whole goes to the system in the same breath as the record of it. */
    const complete = (last?: Uint8Array): void => {
      isSent = true
      onSent()
      request.end(last)
    }
    request.on('socket', (socket) => {
      socket.once(to.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
        if (body.length === 0) return complete()
        const last = body.subarray(-1)
        if (body.length === 1) return complete(last)
        request.write(body.subarray(0, -1), (error) => {
          if (!error) complete(last)
        })
      })
    })
    request.on('response', (response) => {
      const { statusCode = 0 } = response
      response.on('close', () => resolve({ status: statusCode, durationMs: took() }))
      response.resume()
    })
    request.on('timeout', () => {
      isLate = true
      request.destroy(new Error('no answer came in time'))
    })
    request.on('error', (error) => {
      if (isSent) resolve({ status: null, durationMs: took(), isLate, error: error.message })
      else reject(error)
    })
  })
}

const REFUSED: Forwarded = {
  status: null,
  durationMs: 0,
  isRefused: true,
  error: 'its path leads outside the address of the receiver',
}

/** The pause before the next try. */
export const pauseMs = (tries: number): number =>
  Math.min(FIRST_PAUSE_MS * 2 ** tries, MAX_PAUSE_MS)

/** The receiver's path with what followed the inbox's address, as it was sent. */
function pathOf(to: URL, { path, query }: CatchEvent): string {
  const base = path === '' ? to.pathname : to.pathname.replace(/\/$/, '')
  const queries = [to.search.slice(1), query].filter((part) => part !== '')
  return base + path + (queries.length > 0 ? `?${queries.join('&')}` : '')
}

/** In their order and spelling: names and values in turn. */
function headersOf(to: URL, event: CatchEvent, body: Uint8Array): string[] {
  const named = event.headers.flatMap(({ name, value }) =>
    name.toLowerCase() === 'connection' ? value.toLowerCase().split(/\s*,\s*/) : [],
  )
  const kept = event.headers.filter(({ name }) => {
    const lower = name.toLowerCase()
    return !DROPPED.has(lower) && !named.includes(lower) && !lower.startsWith('x-mayfly-event-')
  })
  const hadLength = event.headers.some(({ name }) => name.toLowerCase() === 'content-length')
  return [
    ...['Host', to.host],
    ...kept.flatMap(({ name, value }) => [name, value]),
    ...(body.length > 0 || hadLength ? ['Content-Length', String(body.length)] : []),
    ...['X-Mayfly-Event-Id', event.id, 'X-Mayfly-Event-Sequence', String(event.sequence)],
    ...['Connection', 'close'],
  ]
}
