/** CATCH from the owner's side. */
import type {
  CatchCapability,
  CatchEvent,
  CatchState,
  CatchStatus,
  EventPage,
  EventQuery,
} from '../catch/schema.ts'
import { MayflyError } from './errors.ts'
import { type EventFilter, matchesFilter } from './event-filter.ts'
import type { StreamEvent } from './event-stream.ts'
import type { Http } from './http.ts'
import { dataOf, endOf, follow } from './live.ts'

/**
 * An inbox, from its owner's side. Every call rejects with a MayflyError: `unauthorized` or
 * `not found` where the inbox is gone, `service unreachable` where nobody answers.
 *
 * ```ts
 * const inbox = mayfly.catch(capability)
 * for await (const event of inbox.events({ limit: 50 })) console.log(event.sequence)
 * ```
 */
export type CatchClient = {
  /** State, limits and counters. */
  status(): Promise<CatchStatus>
  /** One page of events, newest first; pass `nextCursor` as `cursor` for the next. */
  page(query?: EventQuery): Promise<EventPage>
  /**
   * Every event that the filter lets through, newest first, page after page.
   *
   * ```ts
   * for await (const event of inbox.events({ method: 'POST', q: 'invoice.paid' })) show(event)
   * ```
   */
  events(query?: EventQuery): AsyncGenerator<CatchEvent, void, undefined>
  /** One event. Rejects with `not found` where there is none. */
  event(eventId: string): Promise<CatchEvent>
  /** The raw body of one event, byte for byte. */
  body(eventId: string): Promise<Uint8Array<ArrayBuffer>>
  /**
   * Events as they come, each once and in order; returns the inbox's status when no more can come.
   * It starts with what comes from now on, or after a sequence. A lost connection is made again, and
   * nothing is missed. Rejects when the inbox is gone or the token is not its owner's.
   *
   * ```ts
   * for await (const event of inbox.stream()) console.log(event.sequence, event.body)
   * ```
   */
  stream(options?: StreamOptions): AsyncGenerator<CatchEvent, CatchState, undefined>
  /**
   * The first event from now on, or after a sequence, that the filter lets through.
   * @throws MayflyError `no event in time`, or `inbox ended` where none can come any more.
   *
   * ```ts
   * const event = await inbox.next({ filter: { method: 'POST' }, timeoutSeconds: 30 })
   * ```
   */
  next(options?: NextOptions): Promise<CatchEvent>
  /** Deletes one event for good. */
  deleteEvent(eventId: string): Promise<void>
  /** Destroys the inbox, its events and both of its capabilities. */
  destroy(): Promise<void>
}

/**
 * What is followed, and from where.
 *
 * ```ts
 * for await (const event of inbox.stream({ after: 7, filter: { method: 'POST' } })) show(event)
 * ```
 */
export type StreamOptions = {
  /** The sequence to go on after; 0 begins with the first event. Default: from now on. */
  after?: number
  /** Passes over all other events, as the event list does. */
  filter?: EventFilter
  signal?: AbortSignal
}

/**
 * What one event is waited for with.
 *
 * ```ts
 * const event = await inbox.next({ after: 0, timeoutSeconds: 30 })
 * ```
 */
export type NextOptions = StreamOptions & {
  /** How long to wait. Default: until the inbox ends. */
  timeoutSeconds?: number
}

/**
 * What the owner of an inbox needs of its capability.
 *
 * ```ts
 * const owner: CatchOwner = { publicId: 'catch_…', ownerToken: 'catch_owner_…' }
 * ```
 */
export type CatchOwner = Pick<CatchCapability, 'publicId' | 'ownerToken'>

export function createCatchClient(http: Http, { publicId, ownerToken }: CatchOwner): CatchClient {
  const path = `/api/catch/${encodeURIComponent(publicId)}`
  const token = ownerToken

  async function page(query: EventQuery = {}): Promise<EventPage> {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) search.set(name, String(value))
    const suffix = search.size > 0 ? `?${search}` : ''
    const asked = { path: `${path}/events${suffix}`, token }
    return http.get<EventPage>(asked, 'events', 'nextCursor', 'latestSequence')
  }

  const eventPath = (eventId: string): string => `${path}/events/${encodeURIComponent(eventId)}`

  async function* stream({
    after,
    filter = {},
    signal,
  }: StreamOptions = {}): AsyncGenerator<CatchEvent, CatchState, undefined> {
    let last = after ?? -1
    const from = after === undefined ? null : String(after)
    for await (const message of follow(http, {
      path: `${path}/stream`,
      token,
      after: from,
      signal,
    })) {
      if (message.event === 'end') return endOf(message) as CatchState
      if (message.event !== 'capture') continue
      const event = eventOf(message)
      if (event.sequence <= last) continue
      last = event.sequence
      if (matchesFilter(event, filter)) yield event
    }
    throw new MayflyError('unexpected answer', 200)
  }

  return {
    status: () => http.get<CatchStatus>({ path, token }, 'status', 'expiresAt'),
    page,
    async *events(query = {}) {
      let cursor: number | null | undefined = query.cursor
      for (;;) {
        const { events, nextCursor } = await page({
          ...query,
          ...(typeof cursor === 'number' ? { cursor } : {}),
        })
        yield* events
        if (nextCursor === null) return
        cursor = nextCursor
      }
    },
    event: (eventId) => http.get<CatchEvent>({ path: eventPath(eventId), token }, 'id', 'sequence'),
    body: (eventId) => http.getBytes({ path: `${eventPath(eventId)}/body`, token }),
    stream,
    async next({ timeoutSeconds, signal, ...options } = {}) {
      const limit = timeoutSeconds === undefined ? null : timeout(timeoutSeconds)
      const signals = [signal, limit].filter((one) => one != null)
      try {
        const events = stream({ ...options, signal: AbortSignal.any(signals) })
        for await (const event of events) return event
      } catch (error) {
        if (limit?.aborted && !signal?.aborted) throw new MayflyError('no event in time', 0)
        throw error
      }
      throw new MayflyError('inbox ended', 0)
    },
    deleteEvent: (eventId) => http.perform({ method: 'DELETE', path: eventPath(eventId), token }),
    destroy: () => http.perform({ method: 'DELETE', path, token }),
  }
}

/** The longest that a timer can wait, some 24 days. */
const MAX_TIMER_MS = 2 ** 31 - 1

function timeout(seconds: number): AbortSignal {
  return AbortSignal.timeout(Math.min(Math.max(Math.ceil(seconds * 1000), 0), MAX_TIMER_MS))
}

function eventOf(message: StreamEvent): CatchEvent {
  const event = dataOf(message) as Partial<CatchEvent> | null
  if (!Number.isSafeInteger(event?.sequence)) throw new MayflyError('unexpected answer', 200)
  return event as CatchEvent
}
