/**
 * Pages of events as JSON, made in parts: each is read when the reader has taken the one before, so
 * that a page of any size holds little, and others run in between.
 */

import { problem } from '../http/errors.ts'
import type { Reservation } from '../http/response-budget.ts'
import { eventJson } from './event.ts'
import type { EventFilter, EventSize, EventStore, WholeEvent } from './event-store.ts'

/** A page ends early rather than be longer than this in JSON; its cursor goes on. */
export const MAX_PAGE_BYTES = 6 * 1024 * 1024
/** What stands around the events of a page. */
const PAGE_FRAME_BYTES = 128
/** A page of events that are all small is read at once, and is one part. */
const SMALL_BYTES = 256 * 1024
/** What is read at a time of any other, but one event at least. */
const PART_BYTES = 256 * 1024
/** JSON beside what an event has: its names, ids, times and hash, and those of its header lines. */
const FRAME_BYTES = 8 * 1024

export type PageAsk = {
  publicId: string
  filter: EventFilter
  limit: number
  latestSequence: number
  /** The events that a search has found, newest first; without it the newest that there are. */
  found: { sequences: number[]; nextCursor: number | null } | null
}

/** What a row holds while it becomes JSON; escaping at most doubles what is text. */
export const heldBy = (rows: Pick<EventSize, 'size'>[]): number =>
  rows.reduce((bytes, { size }) => bytes + 2 * size + FRAME_BYTES, 0)

/**
 * The parts of a page, the last of them returned.
 * @param isOpen whether the inbox is still its owner's to read, asked again for each part.
 * @throws Problem when it is not, or the reader has gone.
 */
export async function* pageParts(
  store: EventStore,
  { publicId, filter, limit, latestSequence, found }: PageAsk,
  reservation: Reservation,
  isOpen: () => Promise<boolean>,
): AsyncGenerator<Buffer, Buffer> {
  await reserve(reservation, 2 * SMALL_BYTES)
  const rows = await reservation.whileReading(() =>
    found
      ? store.sized(publicId, found.sequences, SMALL_BYTES)
      : store.newest(publicId, filter, { limit: limit + 1, bytes: SMALL_BYTES }),
  )
  const chosen = rows.slice(0, limit)
  const hasMore = rows.length > limit
  let nextCursor = found ? found.nextCursor : hasMore ? (chosen.at(-1)?.sequence ?? null) : null
  const end = (): string => `],"nextCursor":${nextCursor},"latestSequence":${latestSequence}}`
  const made = (text: string): Buffer => {
    const bytes = Buffer.from(text)
    reservation.resize(bytes.length)
    return bytes
  }
  await reservation.waitTurn()
  if (chosen.every(isWhole)) return made(`{"events":[${chosen.map(eventJson).join(',')}${end()}`)

  let bytes = PAGE_FRAME_BYTES
  let last: number | null = null
  for (const run of runs(chosen)) {
    await reserve(reservation, heldBy(run))
    const [isStillOpen, events] = await reservation.whileReading(() =>
      Promise.all([
        isOpen(),
        store.events(
          publicId,
          run.map(({ sequence }) => sequence),
        ),
      ]),
    )
    if (!isStillOpen) throw problem('unauthorized')
    let text = last === null ? '{"events":[' : ''
    let isFull = false
    for (const event of events) {
      await reservation.waitTurn()
      const json = eventJson(event)
      const length = Buffer.byteLength(json) + 1
      isFull = last !== null && bytes + length > MAX_PAGE_BYTES
      if (isFull) break
      text += last === null ? json : `,${json}`
      bytes += length
      last = event.sequence
    }
    if (isFull) {
      nextCursor = last
      return made(text + end())
    }
    yield made(text)
  }
  return made(end())
}

/** The first of these whose sizes fit, but at least one. */
export function fitting<T extends { size: number }>(rows: T[], most = PART_BYTES): T[] {
  let bytes = 0
  const cut = rows.findIndex(({ size }, place) => {
    bytes += size
    return bytes > most && place > 0
  })
  return cut === -1 ? rows : rows.slice(0, cut)
}

/** Whether a row has all of its event, and not its size alone. */
export const isWhole = (row: EventSize): row is WholeEvent => row.body !== null

function runs<T extends { size: number }>(rows: T[]): T[][] {
  const found: T[][] = []
  for (let at = 0; at < rows.length; at += found.at(-1)?.length ?? 1) {
    found.push(fitting(rows.slice(at)))
  }
  return found
}

async function reserve(reservation: Reservation, bytes: number): Promise<void> {
  // Nobody is there any more to read it.
  if (!(await reservation.reserve(bytes))) throw problem('request timeout')
}
