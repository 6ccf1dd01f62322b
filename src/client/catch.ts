/** The owner's client of an inbox (CATCH). */
import type {
  CatchCapability,
  CatchEvent,
  CatchRefusals,
  CatchState,
  CatchStatus,
  EventPage,
  EventQuery,
} from '../catch/schema.ts'
import { arrivals } from './arrivals.ts'
import { MayflyError } from './errors.ts'
import { type EventFilter, matchesFilter } from './event-filter.ts'
import type { StreamEvent } from './event-stream.ts'
import type { Http } from './http.ts'
import { dataOf, endOf, follow } from './live.ts'

/**
 * The owner's client of an inbox. Every call rejects with a MayflyError: `unauthorized` or
 * `not found` if the inbox is gone, `service unreachable` if the service does not answer.
 *
 * ```ts
 * const inbox = mayfly.catch(capability)
 * for await (const event of inbox.events({ limit: 50 })) console.log(event.sequence)
 * ```
 */
export type CatchClient = {
  /** State, limits and counters. */
  status(): Promise<CatchStatus>
  /** How many requests the inbox refused, since when, and why. */
  refusals(options?: { signal?: AbortSignal }): Promise<CatchRefusals>
  /**
   * One page of events, newest first. Pass its `nextCursor` as `cursor` to get the next. With
   * `after`, oldest first: pass its last sequence as `after` to get the next.
   */
  page(query?: EventQuery): Promise<EventPage>
  /**
   * Every event that matches the filter, newest first. Loads page after page.
   *
   * ```ts
   * for await (const event of inbox.events({ method: 'POST', q: 'invoice.paid' })) show(event)
   * ```
   */
  events(query?: Omit<EventQuery, 'after' | 'wait'>): AsyncGenerator<CatchEvent, void, undefined>
  /** One event. Rejects with `not found` if it does not exist. */
  event(eventId: string): Promise<CatchEvent>
  /** The raw bytes of an event's body. */
  body(eventId: string): Promise<Uint8Array<ArrayBuffer>>
  /**
   * Yields new events from now on, or all after a sequence, each once and in order. Returns the
   * inbox's state when no more can come. Reconnects after a lost connection without missing events.
   * Rejects if the inbox is gone or the token is not its owner's.
   *
   * ```ts
   * for await (const event of inbox.stream()) console.log(event.sequence, event.body)
   * ```
   */
  stream(options?: StreamOptions): AsyncGenerator<CatchEvent, CatchState, undefined>
  /**
   * The first event from now on, or after a sequence, that matches the filter. To go on without a
   * gap, pass its sequence as `after` to the next call. Lost connections, 429 and 503 are waited out.
   * @throws MayflyError `no event in time`, or `inbox ended` if no more events can come.
   *
   * ```ts
   * const event = await inbox.next({ filter: { method: 'POST' }, timeoutSeconds: 30 })
   * ```
   */
  next(options?: NextOptions): Promise<CatchEvent>
  /**
   * Like `next`, the first event for which the predicate is true. Each event is asked about once, in
   * order.
   *
   * ```ts
   * const paid = await inbox.waitFor(({ body }) => JSON.parse(body).type === 'invoice.paid')
   * ```
   */
  waitFor(
    predicate: (event: CatchEvent) => boolean | Promise<boolean>,
    options?: NextOptions,
  ): Promise<CatchEvent>
  /** Deletes one event permanently. */
  deleteEvent(eventId: string): Promise<void>
  /** Destroys the inbox, its events and both of its capabilities. */
  destroy(): Promise<void>
}

/**
 * Where a stream starts, and which events it yields.
 *
 * ```ts
 * for await (const event of inbox.stream({ after: 7, filter: { method: 'POST' } })) show(event)
 * ```
 */
export type StreamOptions = {
  /** The sequence to continue after; 0 starts with the first event. Default: only new events. */
  after?: number
  /** Skips events that do not match, by the rules of the event list. */
  filter?: EventFilter
  signal?: AbortSignal
  /** Told when the connection is lost, and when it is back. No event is missed meanwhile. */
  onConnection?: (state: 'lost' | 'back') => void
}

/**
 * Options for waiting for one event.
 *
 * ```ts
 * const event = await inbox.next({ after: 0, timeoutSeconds: 30 })
 * ```
 */
export type NextOptions = Omit<StreamOptions, 'onConnection'> & {
  /** How long to wait, in seconds. Default: until the inbox ends. */
  timeoutSeconds?: number
}

/**
 * The part of a capability that the owner's client needs.
 *
 * ```ts
 * const owner: CatchOwner = { publicId: 'catch_…', ownerToken: 'catch_owner_…' }
 * ```
 */
export type CatchOwner = Pick<CatchCapability, 'publicId' | 'ownerToken'>

export function createCatchClient(http: Http, { publicId, ownerToken }: CatchOwner): CatchClient {
  const path = `/api/catch/${encodeURIComponent(publicId)}`
  const token = ownerToken

  async function page(query: EventQuery = {}, signal?: AbortSignal): Promise<EventPage> {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) search.set(name, String(value))
    const suffix = search.size > 0 ? `?${search}` : ''
    const asked = { path: `${path}/events${suffix}`, token, signal }
    return http.get<EventPage>(asked, 'events', 'nextCursor', 'latestSequence')
  }

  const status = (signal?: AbortSignal): Promise<CatchStatus> =>
    http.get<CatchStatus>({ path, token, signal }, 'status', 'expiresAt')

  const awaited = { page, status, wasReached: false }

  async function first(
    isWanted: (event: CatchEvent) => boolean | Promise<boolean>,
    { timeoutSeconds, signal, limit, ...options }: NextOptions & { limit: number },
  ): Promise<CatchEvent> {
    const over = timeoutSeconds === undefined ? null : timeout(timeoutSeconds)
    const signals = [signal, over].filter((one) => one != null)
    try {
      const asked = { ...options, limit, signal: AbortSignal.any(signals) }
      for await (const event of arrivals(awaited, asked)) {
        if (await isWanted(event)) return event
      }
    } catch (error) {
      if (over?.aborted && !signal?.aborted) throw new MayflyError('no event in time', 0)
      throw error
    }
    throw new MayflyError('inbox ended', 0)
  }

  const eventPath = (eventId: string): string => `${path}/events/${encodeURIComponent(eventId)}`

  async function* stream({
    after,
    filter = {},
    signal,
    onConnection,
  }: StreamOptions = {}): AsyncGenerator<CatchEvent, CatchState, undefined> {
    let last = after ?? -1
    const from = after === undefined ? null : String(after)
    for await (const message of follow(http, {
      path: `${path}/stream`,
      token,
      after: from,
      signal,
      onConnection,
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
    status: () => status(),
    refusals: ({ signal } = {}) =>
      http.get<CatchRefusals>({ path: `${path}/refusals`, token, signal }, 'total', 'reasons'),
    page: (query) => page(query),
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
    // The service compares everything but a text, so that the first event it sends is the one.
    next: (options = {}) => first(() => true, { limit: options.filter?.q ? SOME : 1, ...options }),
    waitFor: (predicate, options = {}) => first(predicate, { limit: SOME, ...options }),
    deleteEvent: (eventId) => http.perform({ method: 'DELETE', path: eventPath(eventId), token }),
    destroy: () => http.perform({ method: 'DELETE', path, token }),
  }
}

/** How many events a request brings of which some may not be wanted. */
const SOME = 20
/** The longest timeout of a timer, about 24 days. */
const MAX_TIMER_MS = 2 ** 31 - 1

function timeout(seconds: number): AbortSignal {
  return AbortSignal.timeout(Math.min(Math.max(Math.ceil(seconds * 1000), 0), MAX_TIMER_MS))
}

function eventOf(message: StreamEvent): CatchEvent {
  const event = dataOf(message) as Partial<CatchEvent> | null
  if (!Number.isSafeInteger(event?.sequence)) throw new MayflyError('unexpected answer', 200)
  return event as CatchEvent
}
