/** Search over events: a case-insensitive substring of text body, query, path or content type. */
import { isUtf8 } from 'node:buffer'
import type { FairScheduler, RunSlice } from '../http/fair-scheduler.ts'
import type { EventFilter, EventStore, SearchedEvent } from './event-store.ts'
import { contentTypeOf } from './kept.ts'

/** A slice of a search looks at this many events for their sizes, */
const SEARCH_EVENTS = 256
/** or reads about this many of their bytes. */
const SEARCH_BYTES = 512 * 1024

/** The sequences of events, newest first; `nextCursor` is null where nothing more is below them. */
export type Found = { sequences: number[]; nextCursor: number | null }

/** Finds the newest events that contain a text: no more than fit, but at least one. */
export type Search = (
  publicId: string,
  filter: EventFilter,
  most: { limit: number; bytes: number },
  text: string,
  gone: AbortSignal,
) => Promise<Found>

/** Searches in the events of this store, which take turns; each ends when its client has gone. */
export function createSearch(store: EventStore, scheduler: FairScheduler): Search {
  /** The newest events that contain a text, read in slices that leave room for others. */
  async function search(
    slice: RunSlice,
    publicId: string,
    filter: EventFilter,
    { limit, bytes: most }: { limit: number; bytes: number },
    text: string,
  ): Promise<Found> {
    const sequences: number[] = []
    let bytes = 0
    let below = filter.below
    for (;;) {
      const window = await slice(() => store.sizes(publicId, { ...filter, below }, SEARCH_EVENTS))
      for (const run of runs(window.sizes)) {
        const matching = await slice(async () => {
          const events = await store.searched(
            publicId,
            run.map(({ sequence }) => sequence),
          )
          return events.filter((event) => matches(text, event))
        })
        for (const { sequence, body_bytes } of matching) {
          const isFull =
            sequences.length === limit || (sequences.length > 0 && bytes + body_bytes > most)
          if (isFull) return { sequences, nextCursor: sequences.at(-1) ?? null }
          sequences.push(sequence)
          bytes += body_bytes
        }
      }
      if (window.last === null) return { sequences, nextCursor: null }
      below = window.last
    }
  }

  return (publicId, filter, most, text, gone) =>
    scheduler.run(publicId, gone, (slice) => search(slice, publicId, filter, most, text))
}

function matches(text: string, event: SearchedEvent): boolean {
  const wanted = text.toLowerCase()
  if (event.path.toLowerCase().includes(wanted)) return true
  if (event.query.toLowerCase().includes(wanted)) return true
  if (contentTypeOf(event)?.toLowerCase().includes(wanted)) return true
  // Bytes that are no text have no characters to find.
  const { body } = event
  if (!isUtf8(body)) return false
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    .toString('utf8')
    .toLowerCase()
    .includes(wanted)
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
