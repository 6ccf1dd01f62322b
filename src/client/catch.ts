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
import { createEventParser, readEvents, type StreamEvent } from './event-stream.ts'
import type { Http } from './http.ts'
import { wait } from './wait.ts'

/** The pause after attempts that brought nothing: the first, doubled each time up to the most. */
const RECONNECT_SECONDS = 0.5
const MAX_RECONNECT_SECONDS = 30

export type CatchClient = {
  /** State, limits and counters. */
  status(): Promise<CatchStatus>
  /** One page of events, newest first; pass `nextCursor` as `cursor` for the next. */
  page(query?: EventQuery): Promise<EventPage>
  /** Every event that the filter lets through, newest first, page after page. */
  events(query?: EventQuery): AsyncGenerator<CatchEvent, void, undefined>
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
  /** Deletes one event for good. */
  deleteEvent(eventId: string): Promise<void>
  /** Destroys the inbox, its events and both of its capabilities. */
  destroy(): Promise<void>
}

export type StreamOptions = {
  /** The sequence to go on after; 0 begins with the first event. Default: from now on. */
  after?: number
  signal?: AbortSignal
}

/** What the owner of an inbox needs of its capability. */
export type CatchOwner = Pick<CatchCapability, 'publicId' | 'ownerToken'>

export function createCatchClient(http: Http, { publicId, ownerToken }: CatchOwner): CatchClient {
  const path = `/api/catch/${encodeURIComponent(publicId)}`
  const token = ownerToken

  async function page(query: EventQuery = {}): Promise<EventPage> {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) search.set(name, String(value))
    const suffix = search.size > 0 ? `?${search}` : ''
    return (await http.get({ path: `${path}/events${suffix}`, token })) as EventPage
  }

  return {
    status: async () => (await http.get({ path, token })) as CatchStatus,
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
    async *stream({ after, signal } = {}) {
      let last = after ?? null
      let fruitless = 0
      let wasOpen = false
      for (;;) {
        const parser = createEventParser()
        const openedAt = Date.now()
        let retryAfterSeconds: number | null = null
        try {
          const headers = {
            accept: 'text/event-stream',
            ...(last === null ? {} : { 'last-event-id': String(last) }),
          }
          const body = await http.open({ path: `${path}/stream`, token, headers, signal })
          wasOpen = true
          for await (const told of readEvents(body, parser)) {
            if (told.event === 'end') return endOf(told)
            if (told.event !== 'capture') continue
            const event = eventOf(told)
            if (last !== null && event.sequence <= last) continue
            last = event.sequence
            fruitless = 0
            yield event
          }
        } catch (error) {
          signal?.throwIfAborted()
          if (!isLoss(error, wasOpen)) throw error
          if (error instanceof MayflyError) ({ retryAfterSeconds } = error)
        }
        // The server says where it begins, so that a stream without an event yet has no gap either.
        last ??= sequenceOf(parser.lastEventId())
        if (Date.now() - openedAt > MAX_RECONNECT_SECONDS * 1000) fruitless = 0
        await wait(retryAfterSeconds ?? pauseSeconds(fruitless, parser.retryMs()), signal)
        fruitless++
      }
    },
    async deleteEvent(eventId) {
      await http.get({
        method: 'DELETE',
        path: `${path}/events/${encodeURIComponent(eventId)}`,
        token,
      })
    },
    async destroy() {
      await http.get({ method: 'DELETE', path, token })
    },
  }
}

/** Whether a connection may come back. One that never was there is the caller's to know. */
function isLoss(error: unknown, wasOpen: boolean): boolean {
  if (!(error instanceof MayflyError)) return wasOpen
  if (error.status === 429 || error.status === 503) return true
  return wasOpen && error.status >= 500
}

/** None after a connection that brought something, then longer and longer ones. */
function pauseSeconds(fruitless: number, retryMs: number | null): number {
  if (fruitless === 0) return 0
  const first = retryMs === null ? RECONNECT_SECONDS : retryMs / 1000
  return Math.min(first * 2 ** (fruitless - 1), MAX_RECONNECT_SECONDS)
}

function eventOf({ data }: StreamEvent): CatchEvent {
  const event = parse(data) as Partial<CatchEvent> | null
  if (!Number.isSafeInteger(event?.sequence)) throw new MayflyError('unexpected answer', 200)
  return event as CatchEvent
}

function endOf({ data }: StreamEvent): CatchState {
  const end = parse(data) as { status?: unknown } | null
  if (typeof end?.status !== 'string') throw new MayflyError('unexpected answer', 200)
  return end.status as CatchState
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return null
  }
}

function sequenceOf(id: string): number | null {
  return /^\d{1,15}$/.test(id) ? Number(id) : null
}
