/** New events of an inbox, by requests that wait for them. Each comes once and in order, whatever fails meanwhile. */
import type { CatchEvent, CatchState, CatchStatus, EventPage, EventQuery } from '../catch/schema.ts'
import { MayflyError } from './errors.ts'
import type { EventFilter } from './event-filter.ts'
import { isLoss, pauseSeconds } from './live.ts'
import { wait } from './wait.ts'

/** How long a request waits: below the half minute after which proxies drop a silent connection. */
const WAIT_SECONDS = 25
/** How often a suspended inbox is looked at, for which the service does not wait. */
const SUSPENDED_SECONDS = 5
/** An empty page within this time of its request did not wait, so the next request does. */
const AT_ONCE_SECONDS = 1

/** The requests about one inbox. */
export type Inbox = {
  page(query: EventQuery, signal?: AbortSignal): Promise<EventPage>
  status(signal?: AbortSignal): Promise<CatchStatus>
  /** Whether the service has ever answered about it: then a lost connection is temporary. */
  wasReached: boolean
}

export type Arriving = {
  /** The sequence to continue after. */
  after: number
  filter?: EventFilter | undefined
  /** How many events a request may bring. */
  limit: number
  signal?: AbortSignal | undefined
}

/**
 * Yields the events that match the filter, and returns the state of the inbox when no more can come. Goes on
 * after the last event when a connection is lost or the service asks to wait.
 * @throws MayflyError if the service refuses the request, or has never answered about this inbox.
 */
export async function* arrivals(
  inbox: Inbox,
  { after, filter = {}, limit, signal }: Arriving,
): AsyncGenerator<CatchEvent, CatchState, undefined> {
  const persist = createPersistence(inbox, signal)
  let ended: CatchState | null = null
  try {
    let last = after
    for (;;) {
      const askedAt = Date.now()
      const query = { ...filter, after: last, wait: WAIT_SECONDS, limit }
      const { events, latestSequence } = await persist(() => inbox.page(query, signal))
      for (const event of events) {
        // Anything else would be an event twice, or a loop.
        if (!(Number.isSafeInteger(event.sequence) && event.sequence > last)) {
          throw new MayflyError('unexpected answer', 200)
        }
        last = event.sequence
        yield event
      }
      if (events.length > 0) continue
      // After this state was seen, all events were: no more can come.
      if (ended !== null) return ended
      last = Math.max(last, latestSequence)
      const { status } = await persist(() => inbox.status(signal))
      if (status !== 'active' && status !== 'suspended') ended = status
      else if (status === 'suspended') await wait(SUSPENDED_SECONDS, signal)
      else if (Date.now() - askedAt < AT_ONCE_SECONDS * 1000) await wait(AT_ONCE_SECONDS, signal)
    }
  } catch (error) {
    if (error instanceof MayflyError && inbox.wasReached && isGone(error)) {
      return 'manually_destroyed'
    }
    throw error
  }
}

const isGone = ({ status }: MayflyError): boolean => status === 401 || status === 404

/** Repeats a request that failed for a while, after the pause that the service asks for, or a growing one. */
function createPersistence(inbox: Inbox, signal?: AbortSignal) {
  let losses = 0
  return async function persist<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const answer = await ask()
        inbox.wasReached = true
        losses = 0
        return answer
      } catch (error) {
        signal?.throwIfAborted()
        if (!isLoss(error, { wasOpen: inbox.wasReached, isOpen: false })) throw error
        const asked = error instanceof MayflyError ? error.retryAfterSeconds : null
        await wait(asked ?? pauseSeconds(++losses, null), signal)
      }
    }
  }
}
