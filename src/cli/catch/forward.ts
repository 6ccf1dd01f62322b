/** Sends a captured request to a receiver, with its method, path, query, headers and bytes, until it has taken it. */
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import { type CatchEvent, eventBody } from '../../client/index.ts'
import { messageOf } from '../../lib/errors.ts'
import { HOP_BY_HOP } from '../../lib/hop-by-hop.ts'
import { reasonOf } from '../../lib/reason.ts'
import type { Cli } from '../cli.ts'
import { CliError } from '../exit.ts'
import { harmless, span } from '../text.ts'
import type { Listener } from '../vault/listening.ts'
import { described } from './events.ts'

/** How long a receiver may take until its answer begins, and from then until it ends. */
const ANSWER_MS = 30_000
/** The slowest receiver: 64 KiB a second. What it has not taken then was not sent. */
const SENT_BYTES_PER_MS = 64
/** An answer may have a page in it. One that is longer, or never ends, is cut off: its status is known. */
const MAX_ANSWER_BYTES = 1024 * 1024
/** The first pause while a receiver cannot be reached. It doubles each time, up to the maximum. */
const FIRST_PAUSE_MS = 250
const MAX_PAUSE_MS = 10_000
/** The same for an event that the receiver has failed, which may need longer to come round. */
const FIRST_RETRY_MS = 1000
const MAX_RETRY_MS = 60_000
/** How much of the first line of a receiver's answer is shown. */
const SHOWN_BYTES = 200
/** How much of an answer is kept to find that line, below blank ones. */
const KEPT_BYTES = 4096

/** Hop-by-hop headers (RFC 9110 §7.6.1), and those that the new request sets itself. */
const DROPPED = new Set<string>([...HOP_BY_HOP, 'content-length', 'expect', 'host'])

/** What alerts of a service carry. A ping with it records nothing. */
const ALERT_MARK = 'mayfly-alert'

/**
 * A `..` segment, in all spellings that servers accept. A stranger's request must stay below the
 * receiver's address. A path also ends at an encoded `?` or `#`.
 */
const STEP_UP = /(?:^|[/\\]|%2f|%5c)(?:\.|%2e){2}(?=$|[/\\;?#]|%2f|%5c|%3b|%3f|%23)/i

/**
 * The receiver's answer. Its status is null if the request was sent but not answered: the receiver
 * was too slow, or hung up. It is also null for an event that is never sent (`isRefused`).
 */
export type Forwarded = {
  status: number | null
  durationMs: number
  isRefused?: true
  error?: string
  /** The first line of the answer's body, cut. It can hold control characters. */
  answer?: string
}

export type Receiving = {
  to: URL
  /**
   * Called just before the last byte of the request is sent, or before a request without a body. What it throws ends
   * the request there.
   */
  onSent(): void
  /** How long the answer may take to begin, and then to end. */
  answerMs?: number
}

/**
 * Sends an event once, on a new connection: if a receiver closes a reused one at that moment, it is
 * unknown whether it got the request. Rejects if the request was not sent completely. It ends in time,
 * however slowly the receiver reads and answers: an idle timeout alone never ends a trickle.
 */
export function forward(
  event: CatchEvent,
  { to, onSent, answerMs = ANSWER_MS }: Receiving,
): Promise<Forwarded> {
  if (STEP_UP.test(event.path)) return Promise.resolve(REFUSED)
  const body = eventBody(event)
  const begun = performance.now()
  const took = (): number => Math.round(performance.now() - begun)
  let isSent = false
  return new Promise((resolve, reject) => {
    const send = to.protocol === 'https:' ? requestHttps : requestHttp
    const request = send(to, {
      method: event.method,
      path: pathOf(to, event),
      headers: headersOf(to, event, body),
      agent: false,
    })
    const late = (): void => {
      const why = isSent ? 'no answer came in time' : 'it did not take the request in time'
      request.destroy(new Error(why))
    }
    let limit = setTimeout(late, answerMs + body.length / SENT_BYTES_PER_MS)
    const limitTo = (end: () => void): void => {
      clearTimeout(limit)
      limit = setTimeout(end, answerMs)
    }
    request.on('close', () => clearTimeout(limit))
    /** Sends the last bytes directly after `onSent`, so that a kill hardly comes between them. */
    const complete = (last?: Uint8Array): void => {
      limitTo(late)
      try {
        onSent()
      } catch (error) {
        request.destroy(error as Error)
        return
      }
      isSent = true
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
      limitTo(() => response.destroy())
      let first = Buffer.alloc(0)
      let length = 0
      response.on('data', (chunk: Buffer) => {
        length += chunk.length
        if (first.length < KEPT_BYTES) first = Buffer.concat([first, chunk]).subarray(0, KEPT_BYTES)
        if (length > MAX_ANSWER_BYTES) response.destroy()
      })
      response.on('close', () =>
        resolve({ status: statusCode, durationMs: took(), ...answerIn(first, length) }),
      )
    })
    request.on('error', (error) => {
      if (isSent) resolve({ status: null, durationMs: took(), error: error.message })
      else reject(error)
    })
  })
}

/** The first line of an answer of this length. An ellipsis stands for the rest. */
function answerIn(first: Buffer, length: number): { answer?: string } {
  const text = first.toString('utf8').trimStart()
  const [line = ''] = text.split(/[\r\n]/, 1)
  const bytes = Buffer.from(line).subarray(0, SHOWN_BYTES)
  // A decoder that expects more holds a character back that is cut in two.
  const shown = new TextDecoder().decode(bytes, { stream: true }).trimEnd()
  if (shown === '') return {}
  const isAll = length <= first.length && shown === text.trimEnd()
  return { answer: isAll ? shown : `${shown}…` }
}

/** Whether the receiver took the event. */
export const isAccepted = ({ status }: Forwarded): boolean => status !== null && status < 400

const REFUSED: Forwarded = {
  status: null,
  durationMs: 0,
  isRefused: true,
  error: 'its path leads outside the address of the receiver',
}

/** The pause before the next try to reach a receiver. */
const pauseMs = (tries: number): number => Math.min(FIRST_PAUSE_MS * 2 ** tries, MAX_PAUSE_MS)

/**
 * The pause before an event that failed is sent again. By chance it is up to half shorter, so that the listeners
 * of one receiver do not return together.
 */
export const retryPauseMs = (tries: number, chance: number): number =>
  Math.round(Math.min(FIRST_RETRY_MS * 2 ** tries, MAX_RETRY_MS) * (1 - chance / 2))

/** The receiver's path, with the event's path and query appended as sent. */
function pathOf(to: URL, { path, query }: CatchEvent): string {
  const base = path === '' ? to.pathname : to.pathname.replace(/\/$/, '')
  const queries = [to.search.slice(1), query].filter((part) => part !== '')
  return base + path + (queries.length > 0 ? `?${queries.join('&')}` : '')
}

/** The headers in their order and spelling. Names and values alternate. */
function headersOf(to: URL, event: CatchEvent, body: Uint8Array): string[] {
  const named = event.headers.flatMap(({ name, value }) =>
    name.toLowerCase() === 'connection' ? value.toLowerCase().split(/\s*,\s*/) : [],
  )
  const kept = event.headers.filter(({ name }) => {
    const lower = name.toLowerCase()
    // Even if the sender calls it hop-by-hop: without it, alerts that are forwarded could go in circles.
    if (lower === ALERT_MARK) return true
    return !DROPPED.has(lower) && !named.includes(lower) && !lower.startsWith('x-mayfly-event-')
  })
  const hadLength = event.headers.some(({ name }) => name.toLowerCase() === 'content-length')
  return [
    'Host',
    to.host,
    ...kept.flatMap(({ name, value }) => [name, value]),
    ...(body.length > 0 || hadLength ? ['Content-Length', String(body.length)] : []),
    'X-Mayfly-Event-Id',
    event.id,
    'X-Mayfly-Event-Sequence',
    String(event.sequence),
    'Connection',
    'close',
  ]
}

export type Delivering = {
  to: URL
  listener: Pick<Listener, 'sent' | 'goOnAfter'>
  /** How often a failed event is sent again. */
  retries: number
  signal: AbortSignal
}

/** The last answer, and how often the event was sent. */
export type Delivered = Forwarded & { tries: number }

/**
 * Waits for a receiver that is down, however long: nothing was sent to it. Null if the signal ends this
 * before the receiver has taken the event; the next start then sends it again.
 */
export async function deliver(
  cli: Cli,
  event: CatchEvent,
  { to, listener, retries, signal }: Delivering,
): Promise<Delivered | null> {
  let tries = 0
  let missed = 0
  for (;;) {
    let pause: number
    try {
      const answer = await forward(event, { to, onSent: () => listener.sent(event.sequence) })
      tries++
      if (isAccepted(answer) || answer.isRefused || tries > retries) return { ...answer, tries }
      // Recorded before the pause, so that a stop or a kill in it does not lose the event.
      listener.goOnAfter(event.sequence - 1)
      pause = retryPauseMs(tries - 1, Math.random())
      const says = answer.answer === undefined ? '' : `, it says: ${harmless(answer.answer)}`
      const again = `Again in ${span(Math.round(pause / 1000))} (${tries} of ${retries}).`
      cli.note(`#${event.sequence}: ${outcomeOf(answer)}${says}. ${again}`)
    } catch (error) {
      if (signal.aborted) return null
      // What the vault says is not the receiver's fault.
      if (error instanceof CliError) throw error
      if (missed === 0) {
        const why = reasonOf(error) ?? messageOf(error)
        cli.warn(
          `${to.href} cannot be reached (${why}). Waiting for it; nothing is lost meanwhile.`,
        )
      }
      pause = pauseMs(missed++)
    }
    try {
      await wait(pause, undefined, { signal })
    } catch {
      return null
    }
  }
}

/** Shows what a receiver made of an event. */
export function showForwarded(cli: Cli, event: CatchEvent, answer: Delivered): void {
  const { status, durationMs, error, tries } = answer
  const said = isAccepted(answer) ? undefined : answer.answer
  const { sequence, id, receivedAt, method, path, query, bodyBytes } = event
  const about = { sequence, id, receivedAt, method, path, query, bodyBytes }
  const style = status === null || status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green'
  const outcome = `${outcomeOf(answer)}${tries > 1 ? `, sent ${tries} times` : ''}`
  cli.answer(
    { ...about, status, durationMs, tries, error, answer: said },
    `${described(event)} ${cli.paint('dim', '→')} ${cli.paint(style, harmless(outcome))}\n${said === undefined ? '' : `    it says: ${harmless(said)}\n`}`,
  )
}

/** The outcome of a forwarded event, in a few words. */
function outcomeOf({ status, durationMs, isRefused, error }: Forwarded): string {
  if (status !== null) return `${status} in ${durationMs} ms`
  return isRefused ? `not sent: ${error}` : `sent, but ${error ?? 'no answer'}`
}
