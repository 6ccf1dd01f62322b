/** A live stream across connections: each one resumes after the last event that came. */
import { parseJson } from '../lib/json.ts'
import { MayflyError } from './errors.ts'
import { createEventParser, readEvents, type StreamEvent } from './event-stream.ts'
import type { Http } from './http.ts'
import { wait } from './wait.ts'

/** The pause after a connection that did not last: the first, doubled each time up to the most. */
const RECONNECT_SECONDS = 0.5
const MAX_RECONNECT_SECONDS = 30
/** Doubled so often at most where connections bring events and are lost at once: to 2 seconds. */
const DOUBLED_AFTER_EVENTS = 2
/** A connection that lasted this long was a good one, whatever it brought. */
const STEADY_MS = 30_000

export type Following = {
  path: string
  token: string
  /** Where to resume, as the stream's own event ids say it; null begins with what comes. */
  after: string | null
  signal?: AbortSignal | undefined
}

/**
 * The events of a stream, from connection to connection, until its `end` event, which is the last.
 * Rejects for what the service refuses, and never for a connection that was lost.
 */
export async function* follow(
  http: Http,
  { path, token, after, signal }: Following,
): AsyncGenerator<StreamEvent, void, undefined> {
  let last = after
  let losses = 0
  let wasOpen = false
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
    // The server says where it stands before its first event, so that none is missed after it.
    last = parser.lastEventId() || last
    if (Date.now() - openedAt > STEADY_MS) losses = 0
    if (broughtEvents) losses = Math.min(losses, DOUBLED_AFTER_EVENTS + 1)
    await wait(retryAfterSeconds ?? pauseSeconds(losses, parser.retryMs()), signal)
    losses++
  }
}

/** The JSON of an event, or null where it is not JSON. */
export const dataOf = ({ data }: StreamEvent): unknown => parseJson(data) ?? null

/** The status that an `end` event closes with. */
export function endOf(event: StreamEvent): string {
  const end = dataOf(event) as { status?: unknown } | null
  if (typeof end?.status !== 'string') throw new MayflyError('unexpected answer', 200)
  return end.status
}

/** Whether a connection may come back. The caller is told of one that could never be opened. */
function isLoss(
  error: unknown,
  { wasOpen, isOpen }: { wasOpen: boolean; isOpen: boolean },
): boolean {
  if (!(error instanceof MayflyError) || error.status === 0) return wasOpen
  if (error.status === 429 || error.status === 503) return true
  // A proxy, or the page of a network that wants a log-in, answers for the service meanwhile.
  if (error.phrase === 'unexpected answer' && !isOpen) return wasOpen
  return wasOpen && error.status >= 500
}

/** No pause after the first loss, then longer and longer ones. */
function pauseSeconds(losses: number, retryMs: number | null): number {
  if (losses === 0) return 0
  const first = retryMs === null ? RECONNECT_SECONDS : retryMs / 1000
  return Math.min(first * 2 ** (losses - 1), MAX_RECONNECT_SECONDS)
}
