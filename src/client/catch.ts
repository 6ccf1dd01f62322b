/** The owner's client of an inbox (CATCH). */
import type {
  CatchCapability,
  CatchEvent,
  CatchRefusals,
  CatchResponse,
  CatchResponseShown,
  CatchState,
  CatchStatus,
  EventPage,
  EventQuery,
} from '../catch/schema.ts'
import type { NewToken } from '../http/schemas.ts'
import { parseJson } from '../lib/json.ts'
import { MayflyError } from './errors.ts'
import type { EventFilter } from './event-filter.ts'
import type { StreamEvent } from './event-stream.ts'
import { allPages, type CallOptions, callsAt, type Http, searchOf } from './http.ts'
import { dataOf, endOf, follow } from './live.ts'
import { within } from './wait.ts'

/** Where a stream starts, and which events it yields. */
export type StreamOptions = {
  /** The sequence to continue after; 0 starts with the first event. Default: only new events. */
  after?: number
  /** Skips events that do not match, by the rules of the event list. */
  filter?: EventFilter
  signal?: AbortSignal | undefined
  /** Ends the stream after this time, in milliseconds. Default: when the inbox ends. */
  timeoutMs?: number | undefined
  /** Told when the connection opens, and when it is lost. No event is missed meanwhile. */
  onConnection?: ((state: 'open' | 'lost') => void) | undefined
}

/** Options for waiting for one event. */
export type NextOptions = Omit<StreamOptions, 'onConnection'>

/** The part of a capability that the owner's client needs. */
export type CatchOwner = Pick<CatchCapability, 'publicId' | 'ownerToken'>

/**
 * The owner's client of an inbox. Every call rejects with a MayflyError: `unauthorized` or
 * `not found` if the inbox is gone, `service unreachable` if the service does not answer.
 *
 * ```ts
 * const inbox = mayfly.catch(capability)
 * for await (const event of inbox.events({ limit: 50 })) console.log(event.sequence)
 * ```
 */
export type CatchClient = ReturnType<typeof createCatchClient>

export function createCatchClient(http: Http, { publicId, ownerToken: token }: CatchOwner) {
  const path = `/api/catch/${encodeURIComponent(publicId)}`
  const { read, bytes, change, remove } = callsAt(http, path, token)
  const eventPath = (eventId: string): string => `/events/${encodeURIComponent(eventId)}`
  const handedOut = createHandedOut()

  const page = (query: EventQuery = {}, options?: CallOptions): Promise<EventPage> =>
    read(`/events${searchOf(query)}`, ['events', 'nextCursor', 'latestSequence'], options)

  async function* stream({
    after,
    filter = {},
    onConnection,
    ...options
  }: StreamOptions = {}): AsyncGenerator<CatchEvent, CatchState, undefined> {
    let last = after ?? -1
    for await (const message of follow(http, {
      path: `${path}/stream${searchOf(filter)}`,
      token,
      after: after === undefined ? null : String(after),
      signal: within(options),
      onConnection,
    })) {
      if (message.event === 'end') return endOf(message) as CatchState
      if (message.event !== 'capture') continue
      const event = eventOf(message)
      if (event.sequence <= last) continue
      last = event.sequence
      yield event
    }
    throw new MayflyError('unexpected answer', 200)
  }

  async function first(
    isWanted: (event: CatchEvent) => boolean | Promise<boolean>,
    { timeoutMs, signal, after, filter = {} }: NextOptions,
  ): Promise<CatchEvent> {
    const until = within({ signal, timeoutMs })
    const isNew = ({ sequence }: CatchEvent): boolean =>
      after !== undefined || !handedOut.has(sequence)
    try {
      let last = after ?? handedOut.upTo()
      const isWhole = Object.values(filter).every((value) => value === undefined)
      for await (const event of stream({ after: last, filter, signal: until })) {
        if (isWhole) handedOut.skip(last, event.sequence)
        last = event.sequence
        // Another call may have taken it while the predicate was asked.
        if (!(isNew(event) && (await isWanted(event)) && isNew(event))) continue
        handedOut.add(event.sequence)
        return event
      }
    } catch (error) {
      if (until?.aborted && !signal?.aborted) throw new MayflyError('no event in time', 0)
      throw error
    }
    throw new MayflyError('inbox ended', 0)
  }

  return {
    /** State, limits and counters. */
    status: (options?: CallOptions) => read<CatchStatus>('', ['status', 'expiresAt'], options),
    /** How many requests the inbox refused, since when, and why. */
    refusals: (options?: CallOptions) =>
      read<CatchRefusals>('/refusals', ['total', 'reasons'], options),
    /** How the inbox answers the requests that it stores. A secret is never shown. */
    response: (options?: CallOptions) => read<CatchResponseShown>('/response', [], options),
    /**
     * Chooses how the inbox answers, from the next request on. Resolves to what `response` shows.
     *
     * ```ts
     * await inbox.setResponse({ echo: { query: 'hub.challenge' } })
     * ```
     */
    setResponse: (response: CatchResponse, options?: CallOptions) =>
      change<CatchResponseShown>(['PUT', '/response'], [], {
        json: response,
        isRepeatable: true,
        ...options,
      }),
    /** Returns to 204. */
    deleteResponse: (options?: CallOptions) => remove('/response', options),
    /**
     * One page of events, newest first. Pass its `nextCursor` as `cursor` to get the next. With
     * `after`, oldest first: pass its last sequence as `after` to get the next.
     */
    page,
    /**
     * Every event that matches the filter, newest first. Loads page after page.
     *
     * ```ts
     * for await (const event of inbox.events({ method: 'POST', q: 'invoice.paid' })) show(event)
     * ```
     */
    events: (query: Omit<EventQuery, 'after' | 'wait'> = {}, options?: CallOptions) =>
      allPages(query, 'events', (next) => page(next, options)),
    /** One event. Rejects with `not found` if it does not exist. */
    event: (eventId: string, options?: CallOptions) =>
      read<CatchEvent>(eventPath(eventId), ['id', 'sequence'], options),
    /** The raw bytes of an event's body. */
    body: (eventId: string, options?: CallOptions) => bytes(`${eventPath(eventId)}/body`, options),
    /**
     * Yields new events from now on, or all after a sequence, each once and in order. Returns the
     * inbox's state when no more can come. Reconnects after a lost connection without missing events.
     * Rejects if the inbox is gone or the token is not its owner's.
     *
     * ```ts
     * for await (const event of inbox.stream()) console.log(event.sequence, event.body)
     * ```
     */
    stream,
    /**
     * The first event that matches the filter and that this client has not handed out yet, by `next` or `waitFor`: one
     * that came before the call, too. With `after` it is the first one after that sequence. Lost connections, 429 and
     * 503 are waited out.
     * @throws MayflyError `no event in time`, or `inbox ended` if no more events can come.
     *
     * ```ts
     * const event = await inbox.next({ filter: { method: 'POST' }, timeoutMs: 30_000 })
     * ```
     */
    next: (options: NextOptions = {}) => first(() => true, options),
    /**
     * Like `next`, the first event for which the predicate is true. A call asks about each event once, in order. Anybody
     * can send one, so the predicate must not throw, whatever it says.
     *
     * ```ts
     * const isPaid = (event: CatchEvent) =>
     *   eventJson<{ type?: string }>(event)?.type === 'invoice.paid'
     * const paid = await inbox.waitFor(isPaid)
     * ```
     */
    waitFor: (
      predicate: (event: CatchEvent) => boolean | Promise<boolean>,
      options: NextOptions = {},
    ) => first(predicate, options),
    /** Deletes one event permanently. */
    deleteEvent: (eventId: string, options?: CallOptions) => remove(eventPath(eventId), options),
    /**
     * Makes another token. Save it before anything else: if the answer is lost, rotate again. A new ingest token replaces
     * the one before at once, a new owner token with its first use.
     */
    rotateToken: (kind: 'owner' | 'ingest', options?: CallOptions) =>
      change<NewToken>(['POST', `/tokens/${kind}`], ['token'], options),
    /** Destroys the inbox, its events and both of its capabilities. */
    destroy: (options?: CallOptions) => remove('', options),
  }
}

/** The events that were handed out. Those that were looked at and not wanted stay for the next call. */
function createHandedOut() {
  /** Every event up to here was handed out; of later ones those in `beyond`. */
  let upTo = 0
  const beyond = new Set<number>()
  return {
    upTo: () => upTo,
    has: (sequence: number) => sequence <= upTo || beyond.has(sequence),
    /** There is no event between these two any more. */
    skip(from: number, to: number): void {
      if (upTo >= from) upTo = Math.max(upTo, to - 1)
    },
    add(sequence: number): void {
      beyond.add(sequence)
      while (beyond.delete(upTo + 1)) upTo++
    },
  }
}

/**
 * The JSON in the body of an event; undefined if it is anything else. Nothing checks that it is a `T`: whoever knows
 * the address can send anything, so ask for each member as if it could be missing.
 *
 * ```ts
 * const isPaid = (event: CatchEvent) => eventJson<{ type?: string }>(event)?.type === 'invoice.paid'
 * const paid = await inbox.waitFor(isPaid)
 * ```
 */
export function eventJson<T = unknown>({
  body,
  bodyEncoding,
}: Pick<CatchEvent, 'body' | 'bodyEncoding'>): T | undefined {
  return bodyEncoding === 'utf8' ? (parseJson(body) as T | undefined) : undefined
}

function eventOf(message: StreamEvent): CatchEvent {
  const event = dataOf(message) as Partial<CatchEvent> | null
  if (!Number.isSafeInteger(event?.sequence)) throw new MayflyError('unexpected answer', 200)
  return event as CatchEvent
}
