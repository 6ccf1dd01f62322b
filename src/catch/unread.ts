/** The events of an inbox after those that a stream has looked at. */
import type { Reservation } from '../http/memory.ts'
import type { Clock } from '../lib/clock.ts'
import { type EventRow, isWhole } from './event-rows.ts'
import type { EventFilter, EventStore } from './event-store.ts'
import { fitting, heldBy } from './page.ts'
import type { CatchState } from './schema.ts'
import type { Search } from './search.ts'
import { stateOf } from './state.ts'
import type { InboxRow, InboxStore } from './store.ts'

/** How many small events a stream reads at a time. Of larger ones it reads a part of a page. */
const MOST = { limit: 32, bytes: 128 * 1024 }

/** Which events a stream wants: those above a sequence that match, and contain the text unless it is empty. */
export type Wanted = { above: number; equal: EventFilter['equal']; text: string; gone: AbortSignal }

type Memory = Pick<Reservation, 'reserve' | 'whileReading'>

export type Unread = ReturnType<typeof createUnread>

export function createUnread(deps: {
  store: InboxStore
  eventStore: EventStore
  search: Search
  clock: Clock
}) {
  const { store, eventStore, search, clock } = deps

  /** The next events, or null if it read none although some may exist. */
  async function oldest(
    inbox: InboxRow,
    { above, equal, text, gone }: Wanted,
    reservation: Memory,
  ): Promise<EventRow[] | null> {
    const filter: EventFilter = { order: 'oldest', from: above, equal }
    if (text !== '') {
      const ask = { inbox: inbox.number, filter, text, max: MOST }
      filter.among = (await search(ask, gone)).sequences
      if (filter.among.length === 0) return []
    }
    if (!(await reservation.reserve(2 * MOST.bytes))) return null
    const rows = await reservation.whileReading(() => eventStore.some(inbox.number, filter, MOST))
    const large = rows.findIndex((row) => !isWhole(row))
    if (large !== 0) return rows.slice(0, large === -1 ? rows.length : large).filter(isWhole)
    const some = fitting(rows, MOST.bytes)
    if (!(await reservation.reserve(heldBy(some)))) return null
    const sequences = some.map((row) => row.sequence)
    const events = await reservation.whileReading(() => eventStore.events(inbox.number, sequences))
    // All of them were deleted in between, but later events may exist.
    return events.length === 0 ? null : events.reverse()
  }

  /**
   * The next events, oldest first; up to which sequence the inbox was looked at; and whether it has ended. The state is
   * read before the events, so that an ended inbox has no event that this call missed.
   */
  return async (
    publicId: string,
    wanted: Wanted,
    reservation: Memory,
  ): Promise<{ events: EventRow[]; upTo: number; ended: CatchState | null }> => {
    const { above } = wanted
    const inbox = await store.inbox(publicId)
    if (!inbox) return { events: [], upTo: above, ended: 'manually_destroyed' }
    const state = stateOf(inbox, clock.now())
    if (state === 'expired') return { events: [], upTo: above, ended: state }
    const isNew = inbox.last_sequence > above
    const events = isNew ? await oldest(inbox, wanted, reservation) : []
    if (events === null) return { events: [], upTo: above, ended: null }
    const upTo = events.at(-1)?.sequence ?? Math.max(above, inbox.last_sequence)
    const isOver = state === 'exhausted' || state === 'suspended'
    return { events, upTo, ended: events.length === 0 && isOver ? state : null }
  }
}
