/** Which events contain a text: what a search does in the thread that has read them. */
import { isUtf8 } from 'node:buffer'
import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib'
import type { Row, RowMap, Value } from '../db/db.ts'
import { urlTexts } from '../lib/event-filters.ts'
import { headersOf } from './kept.ts'

/** The parts of an event that a search looks at. */
type SearchedEvent = {
  sequence: number
  path: string
  query: string
  header_lines: Uint8Array
  body: Uint8Array
} & Row

/** An event that contains the text; or, if it has none, the last one that the search has looked at. */
export type FoundRow = { sequence: number; has_text: 0 | 1 } & Row

export const FOUND: RowMap = { module: import.meta.url, name: 'found', map: found }

/**
 * The events that contain this text. Once it has inflated much, it stops and says after which event: the rest is for
 * another turn.
 */
export function found(rows: Row[], text: Value): FoundRow[] {
  const wanted = String(text).toLowerCase()
  const list: FoundRow[] = []
  let inflatedBytes = 0
  for (const event of rows as SearchedEvent[]) {
    const { sequence } = event
    const lines = latin1(event.header_lines).toLowerCase()
    const { text, bytes } = lines.includes(CODING) ? inflated(event) : NOT_CODED
    inflatedBytes += bytes
    if (matches(wanted, event, { lines, text })) list.push({ sequence, has_text: 1 })
    if (inflatedBytes < MOST_BYTES) continue
    list.push({ sequence, has_text: 0 })
    break
  }
  return list
}

/** @param wanted in lower case. */
function matches(
  wanted: string,
  event: SearchedEvent,
  { lines, text }: { lines: string; text: Uint8Array | null },
): boolean {
  if (urlTexts(event).some((text) => text.toLowerCase().includes(wanted))) return true
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
