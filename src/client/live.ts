/** A live stream that reconnects: each connection resumes after the last received event. */
import { parseJson } from '../lib/json.ts'
import { MayflyError } from './errors.ts'
import { createEventParser, readEvents, type StreamEvent } from './event-stream.ts'
import type { Http } from './http.ts'
import { wait } from './wait.ts'

/** The first pause after a short connection. It doubles each time, up to the maximum. */
const RECONNECT_SECONDS = 0.5
const MAX_RECONNECT_SECONDS = 30
/** How often the pause doubles if lost connections delivered events: up to 2 seconds. */
const DOUBLED_AFTER_EVENTS = 2
/** A connection that lasted this long resets the pause. */
const STEADY_MS = 30_000

export type Following = {
  path: string
  token: string
  /** The event id to resume after; null starts with new events. */
  after: string | null
  signal?: AbortSignal | undefined
  /** Told when the connection opens, and once when it is lost. */
  onConnection?: ((state: 'open' | 'lost') => void) | undefined
}

/**
 * Yields the events of a stream up to its `end` event, and reconnects when a connection is lost.
 * Rejects only if the service refuses the request.
 */
export async function* follow(
  http: Http,
  { path, token, after, signal, onConnection }: Following,
): AsyncGenerator<StreamEvent, void, undefined> {
  let last = after
  let losses = 0
  let wasOpen = false
  let isLost = false
  for (;;) {
    const parser = createEventParser()
    const openedAt = Date.now()
    let retryAfterSeconds: number | null = null
    let broughtEvents = false
    let isOpen = false
    try {
      const headers = {
        accept: 'text/event-stream',
        ...(last === null ? {} : { 'last-event-id': last }),
      }
      const body = await http.open({ path, token, headers, signal })
      wasOpen = isOpen = true
      onConnection?.('open')
      isLost = false
      for await (const event of readEvents(body, parser)) {
        broughtEvents = true
        yield event
        if (event.event === 'end') return
      }
    } catch (error) {
      signal?.throwIfAborted()
      if (!isLoss(error, { wasOpen, isOpen })) throw error
      if (error instanceof MayflyError) ({ retryAfterSeconds } = error)
    }
    if (!isLost) onConnection?.('lost')
    isLost = true
    // The server sends its position before the first event, so that a reconnection misses none.
    last = parser.lastEventId() || last
    if (Date.now() - openedAt > STEADY_MS) losses = 0
    if (broughtEvents) losses = Math.min(losses, DOUBLED_AFTER_EVENTS + 1)
    await wait(retryAfterSeconds ?? pauseSeconds(losses), signal)
    losses++
  }
}

/** The parsed JSON of an event, or null if it is not JSON. */
export const dataOf = ({ data }: StreamEvent): unknown => parseJson(data) ?? null

/** The status in an `end` event. */
export function endOf(event: StreamEvent): string {
  const end = dataOf(event) as { status?: unknown } | null
  if (typeof end?.status !== 'string') throw new MayflyError('unexpected answer', 200)
  return end.status
}

/** Whether to reconnect after this error. A connection that never opened rejects instead. */
function isLoss(
  error: unknown,
  { wasOpen, isOpen }: { wasOpen: boolean; isOpen: boolean },
): boolean {
  if (!(error instanceof MayflyError) || error.status === 0) return wasOpen
  if (error.status === 429 || error.status === 503) return true
  // A proxy or a captive portal may answer instead of the service for a while.
  if (error.phrase === 'unexpected answer' && !isOpen) return wasOpen
  return wasOpen && error.status >= 500
}

/** No pause after the first loss, then increasing ones. */
const pauseSeconds = (losses: number): number =>
  losses === 0 ? 0 : Math.min(RECONNECT_SECONDS * 2 ** (losses - 1), MAX_RECONNECT_SECONDS)
