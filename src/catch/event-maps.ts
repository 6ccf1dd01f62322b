/** What is made of events in the thread of the store that has read them. */
import { isUtf8 } from 'node:buffer'
import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib'
import type { Row, RowMap, Value } from '../db/db.ts'
import { utf8 } from '../lib/bytes.ts'
import { urlTexts } from '../lib/event-filters.ts'
import { eventJson } from './event.ts'
import {
  type EventRow,
  type EventSize,
  type FoundRow,
  isWhole,
  type JsonRow,
  type PageRow,
  type SearchedEvent,
  type WholeEvent,
} from './event-rows.ts'
import { contentTypeOf, headersOf } from './kept.ts'

const mapped = (name: string, map: RowMap['map']): RowMap => ({
  module: import.meta.url,
  name,
  map,
})

/** About what the JSON of an event adds to its columns. More is made room for. */
const FRAME_BYTES = 1024
/** The most bytes that a UTF-16 code unit takes in UTF-8. */
const BYTES_PER_CHARACTER = 3

/**
 * The JSON of a page out of events, of which there may be one more than `limit`. It continues after its last
 * event if there is another, unless the cursor is given.
 */
export function smallPage(rows: Row[], ...[limit, latest, isGiven, cursor]: Value[]): PageRow[] {
  const chosen = (rows as EventSize[]).slice(0, Number(limit))
  const last = chosen.at(-1)?.sequence ?? null
  const next = isGiven ? (cursor as number | null) : rows.length > chosen.length ? last : null
  if (chosen.every(isWhole)) {
    const json = pageJson(chosen, pageEnd(next, Number(latest)))
    return [{ json, sequence: last ?? 0, size: 0, next }]
  }
  return chosen.map(({ sequence, size }) => ({ json: null, sequence, size, next }))
}
export const SMALL_PAGE = mapped('smallPage', smallPage)

/** The JSON of a page before and after its events. */
export const PAGE_BEGINNING = '{"events":['
export const pageEnd = (nextCursor: number | null, latestSequence: number): string =>
  `],"nextCursor":${nextCursor},"latestSequence":${latestSequence}}`

/** Each event in JSON. */
export const eventsJson = (rows: Row[]): JsonRow[] =>
  (rows as EventRow[]).map((row) => ({ sequence: row.sequence, json: utf8(eventJson(row)) }))
export const EVENTS_JSON = mapped('eventsJson', eventsJson)

/**
 * The events in which a search finds this text. Once it has inflated much, it stops and says after which event: the
 * rest is for another turn.
 */
export function found(rows: Row[], text: Value): FoundRow[] {
  const wanted = String(text).toLowerCase()
  const list: FoundRow[] = []
  let inflatedBytes = 0
  for (const event of rows as SearchedEvent[]) {
    const { sequence, body_bytes } = event
    const lines = latin1(event.header_lines).toLowerCase()
    const { text, bytes } = lines.includes(CODING) ? inflated(event) : NOT_CODED
    inflatedBytes += bytes
    if (matches(wanted, event, { lines, text })) list.push({ sequence, body_bytes })
    if (inflatedBytes < MOST_BYTES) continue
    list.push({ sequence, body_bytes: null })
    break
  }
  return list
}
export const FOUND = mapped('found', found)

/** Each event is written as it is made: a text of all of them would have to be put together first. */
function pageJson(events: WholeEvent[], ending: string): Uint8Array {
  let buffer = Buffer.allocUnsafeSlow(
    events.reduce((bytes, { body }) => bytes + 2 * body.length + FRAME_BYTES, FRAME_BYTES),
  )
  let end = 0
  const write = (text: string): void => {
    const needed = end + BYTES_PER_CHARACTER * text.length
    if (needed > buffer.length) {
      const larger = Buffer.allocUnsafeSlow(2 * needed)
      buffer.copy(larger, 0, 0, end)
      buffer = larger
    }
    end += buffer.write(text, end)
  }
  write(PAGE_BEGINNING)
  for (const [place, event] of events.entries()) {
    if (place > 0) write(',')
    write(eventJson(event))
  }
  write(ending)
  return new Uint8Array(buffer.buffer.slice(0, end))
}

/** @param wanted in lower case. */
function matches(
  wanted: string,
  event: SearchedEvent,
  { lines, text }: { lines: string; text: Uint8Array | null },
): boolean {
  if (urlTexts(event).some((text) => text.toLowerCase().includes(wanted))) return true
  if (contentTypeOf(event)?.toLowerCase().includes(wanted)) return true
  // All lines at once, which is quick.
  const isInHeaders = BETWEEN_PARTS.test(wanted) ? isInLines(event, wanted) : lines.includes(wanted)
  // A binary body is not searched.
  if (isInHeaders || (isUtf8(event.body) && isIn(event.body, wanted))) return true
  return text !== null && isUtf8(text) && isIn(text, wanted)
}

const CODING = 'content-encoding:'
/** A compressed body with more text than this is not searched, and after so much a search lets others run. */
const MOST_BYTES = 1024 * 1024

type Inflated = { text: Uint8Array | null; bytes: number }

/** The text of a body that is compressed once, and how much was inflated for it. A broken one may break at its end. */
function inflated(event: SearchedEvent): Inflated {
  const codings = headersOf(event).filter(([name]) => `${name.toLowerCase()}:` === CODING)
  const inflate = INFLATE.get(codings.map(([, value]) => value.trim().toLowerCase()).join())
  if (!inflate) return NOT_CODED
  try {
    const text = inflate(event.body, { maxOutputLength: MOST_BYTES })
    return { text, bytes: text.length }
  } catch {
    return { text: null, bytes: Math.min(MOST_BYTES, MOST_TIMES * event.body.length) }
  }
}

const NOT_CODED: Inflated = { text: null, bytes: 0 }
/** About the most that gzip makes of a byte. */
const MOST_TIMES = 1024

type Inflate = (body: Uint8Array, options: { maxOutputLength: number }) => Uint8Array
const INFLATE = new Map<string, Inflate>([
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  // RFC 9110 means a stream with a head, whose first four bits say so; some senders send it without.
  [
    'deflate',
    (body, options) =>
      (((body[0] ?? 0) & 0x0f) === 8 ? inflateSync : inflateRawSync)(body, options),
  ],
  ['br', brotliDecompressSync],
])

/** Whether a header contains this, written as `name: value`. */
function isInLines(event: SearchedEvent, wanted: string): boolean {
  return headersOf(event).some(([name, value]) =>
    `${name}: ${value}`.toLowerCase().includes(wanted),
  )
}

/** Stored headers are `name:value` and a line feed. Only such texts could be found in one form and not in the other. */
const BETWEEN_PARTS = /[:\n]|^ /

const latin1 = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('latin1')

/**
 * Whether a text in UTF-8 contains this, in either case. A text of ASCII needs no decoding to be searched for,
 * unless one of the two letters that are ASCII only in lower case is there, which is rare.
 */
function isIn(body: Uint8Array, wanted: string): boolean {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const isPlain =
    IS_ASCII.test(wanted) && !ASCII_WHEN_LOWER.some((letter) => bytes.includes(letter))
  if (!isPlain) return bytes.toString('utf8').toLowerCase().includes(wanted)
  for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
    // In Latin-1 each byte is a character, and those of one that is not ASCII are none that is asked for.
    const piece = bytes.toString('latin1', from, from + PIECE_BYTES + wanted.length - 1)
    if (piece.toLowerCase().includes(wanted)) return true
  }
  return false
}

/** Texts of this size are quick to make and to forget. */
const PIECE_BYTES = 64 * 1024
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const IS_ASCII = /^[\u0000-\u007f]*$/
/** The Kelvin sign, whose lower case is `k`, and the dotted capital I, whose is `i` and a dot. */
const ASCII_WHEN_LOWER = [Buffer.from('\u212a'), Buffer.from('\u0130')]
