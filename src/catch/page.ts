/**
 * Pages of events as JSON, in parts: each part is read from the store after the client has received
 * the one before. So a large page needs little memory, and other requests run in between.
 */

import { problem } from '../http/errors.ts'
import type { Reservation } from '../http/memory.ts'
import { concat, utf8 } from '../lib/bytes.ts'
import { PAGE_BEGINNING, pageEnd } from './event-maps.ts'
import type { EventSize, Found, PageRow } from './event-rows.ts'
import type { EventFilter, EventStore, Order } from './event-store.ts'

/** A page ends early before its JSON exceeds this. Its cursor continues after it. */
export const MAX_PAGE_BYTES = 6 * 1024 * 1024
/** The JSON around the events of a page. */
const PAGE_FRAME_BYTES = 128
/** A page whose events sum up to less is read at once, as one part. */
const SMALL_BYTES = 256 * 1024
/** The size of each part of a larger page. A part has at least one event. */
const PART_BYTES = 256 * 1024
/** What JSON adds to an event: member names, ids, times and hash, and the names in its header list. */
const FRAME_BYTES = 8 * 1024

export type PageAsk = {
  inbox: number
  filter: EventFilter
  limit: number
  latestSequence: number
  /** The results of a search; null for the first events that match the filter. */
  found: Found | null
}

/** Where a page that ends with this sequence continues. Oldest first, a page has no cursor. */
export const cursorAfter = (order: Order, sequence: number | undefined): number | null =>
  order === 'newest' ? (sequence ?? null) : null

/** The memory that rows use while they become JSON. Escaping at most doubles a text. */
export const heldBy = (rows: Pick<EventSize, 'size'>[]): number =>
  rows.reduce((bytes, { size }) => bytes + 2 * size + FRAME_BYTES, 0)

/**
 * Reads a page, or of a larger one only what it consists of, for `pageParts`.
 * @throws Problem when the client has left.
 */
export async function readPage(
  { inbox, filter, limit, latestSequence, found }: PageAsk,
  { store, reservation }: { store: EventStore; reservation: Reservation },
): Promise<PageRow[]> {
  await reserve(reservation, 2 * SMALL_BYTES)
  if (found?.sequences.length === 0) return []
  const { order } = filter
  const most = { bytes: SMALL_BYTES, latestSequence }
  return reservation.whileReading(() =>
    found
      ? store.sized(inbox, found, { order, ...most })
      : store.first(inbox, filter, { limit, ...most }),
  )
}

/** Whether the page that was read has no events. */
export const isEmpty = ([first]: PageRow[]): boolean => first === undefined || first.sequence === 0

/**
 * Yields the parts of a page and returns the last one. `isOpen` tells, before each part, whether the
 * owner may still read the inbox.
 * @throws Problem when the inbox has ended or the client has left.
 */
export async function* pageParts(
  { inbox, filter, latestSequence, found }: PageAsk,
  rows: PageRow[],
  {
    store,
    reservation,
    isOpen,
  }: { store: EventStore; reservation: Reservation; isOpen: () => Promise<boolean> },
): AsyncGenerator<Buffer, Buffer> {
  const { order } = filter
  const [first] = rows
  const made = (...parts: Uint8Array[]): Buffer => {
    const { buffer, byteOffset, byteLength } =
      parts.length === 1 ? (parts[0] as Uint8Array) : concat(...parts)
    reservation.resize(byteLength)
    return Buffer.from(buffer, byteOffset, byteLength)
  }
  let nextCursor = first ? first.next : (found?.nextCursor ?? null)
  const end = (): Uint8Array => utf8(pageEnd(nextCursor, latestSequence))
  if (first === undefined) return made(BEGINNING, end())
  if (first.json) return made(first.json)

  let bytes = PAGE_FRAME_BYTES
  let last: number | null = null
  for (const run of runs(rows)) {
    await reserve(reservation, heldBy(run))
    const [isStillOpen, events] = await reservation.whileReading(() =>
      Promise.all([
        isOpen(),
        store.json(inbox, { sequences: run.map(({ sequence }) => sequence), order }),
      ]),
    )
    if (!isStillOpen) throw problem('unauthorized')
    const parts: Uint8Array[] = []
    let isFull = false
    for (const { sequence, json } of events) {
      isFull = last !== null && bytes + json.length + 1 > MAX_PAGE_BYTES
      if (isFull) break
      parts.push(last === null ? BEGINNING : COMMA, json)
      bytes += json.length + 1
      last = sequence
    }
    if (isFull) {
      nextCursor = cursorAfter(order, last ?? undefined)
      return made(...parts, end())
    }
    yield made(...parts)
  }
  return made(end())
}

const BEGINNING = utf8(PAGE_BEGINNING)
const COMMA = utf8(',')

/** As many of the first rows as fit, but at least one. */
export function fitting<T extends { size: number }>(rows: T[], most = PART_BYTES): T[] {
  let bytes = 0
  const cut = rows.findIndex(({ size }, place) => {
    bytes += size
    return bytes > most && place > 0
  })
  return cut === -1 ? rows : rows.slice(0, cut)
}

function runs<T extends { size: number }>(rows: T[]): T[][] {
  const found: T[][] = []
  for (let at = 0; at < rows.length; at += found.at(-1)?.length ?? 1) {
    found.push(fitting(rows.slice(at)))
  }
  return found
}

async function reserve(reservation: Reservation, bytes: number): Promise<void> {
  // The client has left.
  if (!(await reservation.reserve(bytes))) throw problem('request timeout')
}
