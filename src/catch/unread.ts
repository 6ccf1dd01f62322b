/** The events of an inbox after those that a stream has sent. */
import type { Reservation } from '../http/memory.ts'
import type { Clock } from '../lib/clock.ts'
import { type EventRow, isWhole } from './event-rows.ts'
import type { EventStore } from './event-store.ts'
import { fitting, heldBy } from './page.ts'
import type { CatchState } from './schema.ts'
import { stateOf } from './state.ts'
import type { InboxStore } from './store.ts'

/** How many small events a stream reads at a time. Of larger ones it reads a part of a page. */
const STREAM_EVENTS = 32
const STREAM_BYTES = 128 * 1024

/**
 * The events after a sequence, oldest first, and whether the inbox has ended. The state is read before the
 * events, so that an ended inbox has no event that this call missed.
 */
export type Unread = (
  publicId: string,
  sequence: number,
  reservation: Pick<Reservation, 'reserve' | 'whileReading'>,
) => Promise<{ events: EventRow[]; ended: CatchState | null }>

export function createUnread(deps: {
  store: InboxStore
  eventStore: EventStore
  clock: Clock
}): Unread {
  const { store, eventStore, clock } = deps

  /** The next events above a sequence, or null if it read none although some may exist. */
  async function oldest(
    inbox: number,
    above: number,
    reservation: Pick<Reservation, 'reserve' | 'whileReading'>,
  ): Promise<EventRow[] | null> {
    if (!(await reservation.reserve(2 * STREAM_BYTES))) return null
    const most = { limit: STREAM_EVENTS, bytes: STREAM_BYTES }
    const rows = await reservation.whileReading(() => eventStore.oldest(inbox, above, most))
    const large = rows.findIndex((row) => !isWhole(row))
    if (large !== 0) return rows.slice(0, large === -1 ? rows.length : large).filter(isWhole)
    const some = fitting(rows, STREAM_BYTES)
    if (!(await reservation.reserve(heldBy(some)))) return null
    const sequences = some.map((row) => row.sequence)
    const events = await reservation.whileReading(() => eventStore.events(inbox, sequences))
    // All of them were deleted in between, but later events may exist.
    return events.length === 0 ? null : events.reverse()
  }

  return async (publicId, sequence, reservation) => {
    const inbox = await store.inbox(publicId)
    if (!inbox) return { events: [], ended: 'manually_destroyed' }
    const state = stateOf(inbox, clock.now())
    if (state === 'expired') return { events: [], ended: state }
    // Read after the state: an exhausted inbox has no event that these rows could have missed.
    const events =
      inbox.last_sequence > sequence ? await oldest(inbox.number, sequence, reservation) : []
    if (events === null) return { events: [], ended: null }
    const isOver = state === 'exhausted' || state === 'suspended'
    return { events, ended: events.length === 0 && isOver ? state : null }
  }
}
