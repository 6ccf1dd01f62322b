/** Search over events: a case-insensitive substring of text body, query, path or content type. */
import { isUtf8 } from 'node:buffer'
import type { CatchStore, EventFilter, Newest } from './store.ts'

/** A search reads this many events, and about this many body bytes, before it lets others run. */
const SEARCH_EVENTS = 256
const SEARCH_BYTES = 512 * 1024

/** Finds the newest events that contain a text, as the store's `newest` finds all. */
export type Search = (
  publicId: string,
  filter: EventFilter,
  most: { limit: number; bytes: number },
  text: string,
) => Promise<Newest>

/** One search at a time, in the events of this store. */
export function createSearch(store: CatchStore): Search {
  let searches: Promise<unknown> = Promise.resolve()

  /** The newest events that contain a text, read in slices that leave room for others. */
  async function search(
    publicId: string,
    filter: EventFilter,
    { limit, bytes: most }: { limit: number; bytes: number },
    text: string,
  ): Promise<Newest> {
    const sequences: number[] = []
    let bytes = 0
    let below = filter.below
    for (;;) {
      const candidates = await store.texts(publicId, { ...filter, below }, SEARCH_EVENTS)
      for (const slice of slices(candidates)) {
        const bodies = await store.bodies(
          publicId,
          slice.map((event) => event.sequence),
        )
        const bodyOf = new Map(bodies.map(({ sequence, body }) => [sequence, body]))
        for (const event of slice) {
          const body = bodyOf.get(event.sequence)
          if (!body || !matches(text, { ...event, body })) continue
          const isFull =
            sequences.length === limit || (sequences.length > 0 && bytes + event.body_bytes > most)
          if (isFull) return found(publicId, sequences, sequences.at(-1) ?? null)
          sequences.push(event.sequence)
          bytes += event.body_bytes
        }
        // Lets requests in between two slices, however fast the store answers.
        await new Promise((resolve) => setImmediate(resolve))
      }
      const last = candidates.at(-1)
      if (!last || candidates.length < SEARCH_EVENTS) return found(publicId, sequences, null)
      below = last.sequence
    }
  }

  async function found(
    publicId: string,
    sequences: number[],
    nextCursor: number | null,
  ): Promise<Newest> {
    const rows = sequences.length > 0 ? await store.events(publicId, sequences) : []
    return { rows, nextCursor }
  }

  /** One search at a time: the next waits, and other requests do not. */
  function searchInTurn(...ask: Parameters<typeof search>): Promise<Newest> {
    const turn = searches.then(() => search(...ask))
    searches = turn.catch(() => undefined)
    return turn
  }

  return searchInTurn
}

function matches(
  text: string,
  event: { path: string; query: string; content_type: string | null; body: Uint8Array },
): boolean {
  const wanted = text.toLowerCase()
  if (event.path.toLowerCase().includes(wanted)) return true
  if (event.query.toLowerCase().includes(wanted)) return true
  if (event.content_type?.toLowerCase().includes(wanted)) return true
  // Bytes that are no text have no characters to find.
  const { body } = event
  if (!isUtf8(body)) return false
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    .toString('utf8')
    .toLowerCase()
    .includes(wanted)
}

/** Cuts candidates into runs of a bounded number of body bytes. */
function slices<T extends { body_bytes: number }>(events: T[]): T[][] {
  const runs: T[][] = []
  let run: T[] = []
  let bytes = 0
  for (const event of events) {
    if (run.length > 0 && bytes + event.body_bytes > SEARCH_BYTES) {
      runs.push(run)
      run = []
      bytes = 0
    }
    run.push(event)
    bytes += event.body_bytes
  }
  if (run.length > 0) runs.push(run)
  return runs
}
