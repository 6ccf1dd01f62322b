/** The requests of an inbox that the page has loaded, newest first, and their filter. */
import { computed, signal } from '@preact/signals'
import type { CatchClient } from '../../client/catch.ts'
import { type EventFilter, matchesFilter } from '../../client/event-filter.ts'
import type { CatchEvent } from '../../client/index.ts'

/** The most that the service gives at once. */
const PAGE_EVENTS = 50

/** A span of time, in unix milliseconds. */
export type Span = { from: number; to: number }

export type Events = ReturnType<typeof createEvents>

export function createEvents(inbox: Pick<CatchClient, 'page'>) {
  const filter = signal<EventFilter>({})
  const loaded = signal<readonly CatchEvent[]>([])
  const olderCursor = signal<number | null>(null)
  /** Of an older place that was jumped to: the newest one there. Null at the newest request of all. */
  const jumpedTo = signal<number | null>(null)
  /** How many came while an older place is shown. */
  const missed = signal(0)
  const span = signal<Span | null>(null)
  const isLoading = signal(false)
  const hidden = signal<ReadonlySet<string>>(new Set())
  let known = new Set<string>()
  /** The newest request of all, also if it is not shown. */
  let latest = 0
  /** What was asked last. An answer to anything else comes too late. */
  let asked = {}

  /** Matches the filter, and is not being deleted. A span narrows what is shown, and loads nothing. */
  const shown = computed(() => {
    const { value: out } = hidden
    const within = span.value
    if (out.size === 0 && within === null) return loaded.value
    return loaded.value.filter(({ id, receivedAt }) => {
      const at = within === null ? 0 : Date.parse(receivedAt)
      return !out.has(id) && (within === null || (at >= within.from && at < within.to))
    })
  })

  function take(events: readonly CatchEvent[]): void {
    known = new Set(events.map(({ id }) => id))
    loaded.value = events
  }

  /** Loads a page in place of what is there. The filter and its rows change together, or neither does. */
  async function show(next: EventFilter, below: number | null): Promise<void> {
    const mine = {}
    asked = mine
    isLoading.value = true
    try {
      const cursor = below === null ? {} : { cursor: below }
      const page = await inbox.page({ ...next, ...cursor, limit: PAGE_EVENTS })
      if (asked !== mine) return
      const newer =
        below === null
          ? loaded.value.filter(
              (event) => event.sequence > page.latestSequence && matchesFilter(event, next),
            )
          : []
      latest = Math.max(latest, page.latestSequence)
      filter.value = next
      span.value = null
      missed.value = 0
      jumpedTo.value = below === null ? null : (page.events[0]?.sequence ?? below)
      olderCursor.value = page.nextCursor
      take([...newer, ...page.events])
    } finally {
      if (asked === mine) isLoading.value = false
    }
  }

  return {
    filter,
    loaded,
    shown,
    span,
    jumpedTo,
    missed,
    isLoading,
    latestSequence: () => latest,
    isFiltered: computed(() => Object.keys(filter.value).length > 0 || span.value !== null),
    hasOlder: computed(() => olderCursor.value !== null && span.value === null),
    load: () => show(filter.peek(), null),
    filterBy: (next: EventFilter) => show(next, null),
    async loadOlder(): Promise<void> {
      const cursor = olderCursor.peek()
      if (cursor === null || isLoading.peek()) return
      const mine = asked
      isLoading.value = true
      try {
        const page = await inbox.page({ ...filter.peek(), cursor, limit: PAGE_EVENTS })
        if (asked !== mine) return
        olderCursor.value = page.nextCursor
        take([...loaded.peek(), ...page.events])
      } finally {
        if (asked === mine) isLoading.value = false
      }
    },
    /** Shows the requests that came before this time, newest first; all without one: then the oldest are shown. */
    async jump(before: number | null): Promise<void> {
      if (before === null) {
        const page = await inbox.page({ ...filter.peek(), after: 0, limit: PAGE_EVENTS })
        await show(filter.peek(), (page.events.at(-1)?.sequence ?? 0) + 1)
        return
      }
      // Sequences grow with time, so halving finds the place.
      let [low, high] = [1, latest + 1]
      while (low < high) {
        const middle = Math.floor((low + high) / 2)
        const { events } = await inbox.page({ cursor: middle + 1, limit: 1 })
        const [event] = events
        const isBefore = event === undefined || Date.parse(event.receivedAt) < before
        if (isBefore) low = middle + 1
        else high = Math.min(middle, event.sequence)
      }
      await show(filter.peek(), low)
    },
    /** Adds a new request. False if it is loaded already, or not shown now. */
    add(event: CatchEvent): boolean {
      latest = Math.max(latest, event.sequence)
      if (known.has(event.id) || !matchesFilter(event, filter.peek())) return false
      if (jumpedTo.peek() !== null) {
        missed.value++
        return false
      }
      known.add(event.id)
      loaded.value = [event, ...loaded.peek()]
      return true
    },
    /** Leaves a request out, until it is shown again. */
    hide(id: string): void {
      hidden.value = new Set([...hidden.peek(), id])
    },
    unhide(id: string): void {
      hidden.value = new Set([...hidden.peek()].filter((each) => each !== id))
    },
  }
}
