/** The events of an inbox that the page has loaded, newest first, and their filter. */
import type { CatchClient } from '../../client/catch.ts'
import { type EventFilter, matchesFilter } from '../../client/event-filter.ts'
import type { CatchEvent } from '../../client/index.ts'

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
  remove(id: string): void
}

export function createLoadedEvents(inbox: Pick<CatchClient, 'page'>): LoadedEvents {
  let filter: EventFilter = {}
  let events: CatchEvent[] = []
  let olderCursor: number | null = null

  async function load(): Promise<{ latestSequence: number }> {
    const asked = filter
    const page = await inbox.page(asked)
    // The user has chosen another filter meanwhile, which loads its own page.
    if (asked !== filter) return page
    const newer = events.filter(
      (event) => event.sequence > page.latestSequence && matchesFilter(event, asked),
    )
    events = [...newer, ...page.events]
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
      const page = await inbox.page({ ...asked, cursor: olderCursor })
      if (asked !== filter) return
      events = [...events, ...page.events]
      olderCursor = page.nextCursor
    },
    async filterBy(chosen) {
      filter = chosen
      await load()
    },
    add(event) {
      if (!matchesFilter(event, filter) || events.some(({ id }) => id === event.id)) return false
      events = [event, ...events]
      return true
    },
    remove(id) {
      events = events.filter((event) => event.id !== id)
    },
  }
}
