/** Search over events: a case-insensitive substring of text body, query, path, content type or a header. */
import type { RunSlice, Scheduler } from '../http/turns.ts'
import type { Found } from './event-rows.ts'
import type { EventFilter, EventStore } from './event-store.ts'
import { cursorAfter } from './page.ts'

/** One slice of a search reads the sizes of at most this many events. */
const SEARCH_EVENTS = 256
/** One slice of a search reads about this many bytes of events. */
const SEARCH_BYTES = 512 * 1024

/** Finds the first events that contain a text: as many as fit into a page, but at least one. */
export type Search = (ask: SearchAsk, gone: AbortSignal) => Promise<Found>

export type SearchAsk = {
  inbox: number
  filter: EventFilter
  text: string
  max: { limit: number; bytes: number }
}

/** Creates the search. Concurrent searches take turns, and each ends when its client leaves. */
export function createSearch(store: EventStore, scheduler: Scheduler): Search {
  /** Reads the events in slices, so that other requests run in between. */
  async function search({ inbox, filter, text, max }: SearchAsk, slice: RunSlice): Promise<Found> {
    const sequences: number[] = []
    let bytes = 0
    const { order } = filter
    let from = filter.from
    for (;;) {
      const window = await slice(() => store.sizes(inbox, { ...filter, from }, SEARCH_EVENTS))
      const waiting = runs(window.sizes)
      for (let run = waiting.shift(); run; run = waiting.shift()) {
        const ofRun = { sequences: run.map(({ sequence }) => sequence), order }
        const matching = await slice(() => store.searched(inbox, ofRun, text))
        for (const { sequence, body_bytes } of matching) {
          if (body_bytes === null) {
            const rest = run.slice(1 + ofRun.sequences.indexOf(sequence))
            if (rest.length > 0) waiting.unshift(rest)
            continue
          }
          const isFull =
            sequences.length === max.limit ||
            (sequences.length > 0 && bytes + body_bytes > max.bytes)
          if (isFull) return { sequences, nextCursor: cursorAfter(order, sequences.at(-1)) }
          sequences.push(sequence)
          bytes += body_bytes
        }
      }
      if (window.last === null) return { sequences, nextCursor: null }
      from = window.last
    }
  }

  return (ask, gone) => scheduler.run(String(ask.inbox), gone, (slice) => search(ask, slice))
}

/** Cuts events into runs of a bounded number of bytes. */
function runs<T extends { bytes: number }>(events: T[]): T[][] {
  const all: T[][] = []
  let run: T[] = []
  let bytes = 0
  for (const event of events) {
    if (run.length > 0 && bytes + event.bytes > SEARCH_BYTES) {
      all.push(run)
      run = []
      bytes = 0
    }
    run.push(event)
    bytes += event.bytes
  }
  if (run.length > 0) all.push(run)
  return all
}
