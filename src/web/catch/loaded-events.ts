/** The events of an inbox that the page has loaded, newest first, and their filter. */
import type { CatchClient } from '../../client/catch.ts'
import { type EventFilter, matchesFilter } from '../../client/event-filter.ts'
import type { CatchEvent } from '../../client/index.ts'

/** The most that the service gives at once. */
const PAGE_EVENTS = 50

export type LoadedEvents = {
  list(): readonly CatchEvent[]
  hasOlder(): boolean
  isFiltered(): boolean
  /** Loads the newest page. Events that arrive meanwhile stay on top. */
  load(): Promise<{ latestSequence: number }>
  loadOlder(): Promise<void>
  filterBy(filter: EventFilter): Promise<void>
  /** Adds a new event. False if it is loaded already or filtered out. */
  add(event: CatchEvent): boolean
  /** Leaves an event out of every page, until it is shown again. */
  hide(id: string): void
  /** Shows a hidden event again, if it matches the filter and no older one is missing before it. */
  unhide(event: CatchEvent): void
}

export function createLoadedEvents(inbox: Pick<CatchClient, 'page'>): LoadedEvents {
  let filter: EventFilter = {}
  let events: CatchEvent[] = []
  let known = new Set<string>()
  let olderCursor: number | null = null
  const hidden = new Set<string>()

  function take(all: CatchEvent[]): void {
    events = all.filter(({ id }) => !hidden.has(id))
    known = new Set(events.map(({ id }) => id))
  }

  async function load(): Promise<{ latestSequence: number }> {
    const asked = filter
    const page = await inbox.page({ ...asked, limit: PAGE_EVENTS })
    // The user has chosen another filter meanwhile, which loads its own page.
    if (asked !== filter) return page
    const newer = events.filter(
      (event) => event.sequence > page.latestSequence && matchesFilter(event, asked),
    )
    take([...newer, ...page.events])
    olderCursor = page.nextCursor
    return page
  }

  return {
    list: () => events,
    hasOlder: () => olderCursor !== null,
    isFiltered: () => Object.keys(filter).length > 0,
    load,
    async loadOlder() {
      if (olderCursor === null) return
      const asked = filter
      const cursor = olderCursor
      const page = await inbox.page({ ...asked, cursor, limit: PAGE_EVENTS })
      if (asked !== filter || cursor !== olderCursor) return
      take([...events, ...page.events])
      olderCursor = page.nextCursor
    },
    async filterBy(chosen) {
      filter = chosen
      await load()
    },
    add(event) {
      if (known.has(event.id) || hidden.has(event.id) || !matchesFilter(event, filter)) return false
      known.add(event.id)
      events.unshift(event)
      return true
    },
    hide(id) {
      hidden.add(id)
      take(events)
    },
    unhide(event) {
      hidden.delete(event.id)
      const isOlder = olderCursor !== null && event.sequence < olderCursor
      if (isOlder || known.has(event.id) || !matchesFilter(event, filter)) return
      take([...events, event].sort((one, other) => other.sequence - one.sequence))
    },
  }
}
