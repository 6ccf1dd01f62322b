/** The parts of a multipart body (RFC 2046 §5.1, RFC 7578), as its sender wrote them. */
import { base64Bytes, utf8Text } from '../../lib/bytes.ts'
import { mediaOf } from './media.ts'

export type Part = {
  headers: readonly { name: string; value: string }[]
  /** Of a form's field, if the part names one. */
  name: string | null
  filename: string | null
  contentType: string | null
  /** What the part holds; base64 is decoded. */
  bytes: Uint8Array<ArrayBuffer>
}

export type Multipart = {
  parts: readonly Part[]
  /** What to say if this is not all, or not as the specification has it; null if it is. */
  remark: string | null
}

/** A form has far fewer parts. */
export const MAX_PARTS = 200
/** The longest boundary that RFC 2046 allows. */
const MAX_BOUNDARY_CHARACTERS = 70
const MAX_HEADER_BYTES = 16 * 1024
const MAX_HEADERS = 50

const CR = 13
const LF = 10
const DASH = 45

/** The parts, or null if the body has none with this boundary. */
export function multipartOf(
  body: Uint8Array<ArrayBuffer>,
  boundary: string | undefined,
): Multipart | null {
  if (!boundary || boundary.length > MAX_BOUNDARY_CHARACTERS) return null
  const marks = marksIn(body, latin1Bytes(`--${boundary}`))
  const [first] = marks
  if (!first || first.isLast) return null
  const parts: Part[] = []
  for (const [index, mark] of marks.entries()) {
    if (mark.isLast) return { parts, remark: null }
    const next = marks[index + 1]
    parts.push(partOf(body.slice(mark.end, next?.start ?? body.length)))
    if (next === undefined && parts.length < MAX_PARTS) break
    if (parts.length === MAX_PARTS && next?.isLast !== true) {
      return { parts, remark: `Only its first ${MAX_PARTS} parts are shown.` }
    }
  }
  return { parts, remark: 'Its end is missing: the last part may be cut.' }
}

type Mark = { start: number; end: number; isLast: boolean }

/** Where lines with the boundary begin, with the line end before each, and end. */
function marksIn(body: Uint8Array, delimiter: Uint8Array): Mark[] {
  const marks: Mark[] = []
  for (let at = 0; at <= body.length - delimiter.length; ) {
    if (!startsWith(body, delimiter, at)) {
      const end = body.indexOf(LF, at)
      if (end === -1) break
      at = end + 1
      continue
    }
    let end = at + delimiter.length
    const isLast = body[end] === DASH && body[end + 1] === DASH
    while (end < body.length && body[end] !== LF && body[end] !== CR) end++
    const rest = isLast
      ? ''
      : latin1(body.subarray(at + delimiter.length, Math.min(end, at + 1000)))
    if (body[end] === CR) end++
    if (body[end] === LF) end++
    // Only space may follow, or the line belongs to a longer boundary.
    if (rest.trim() === '') marks.push({ start: startOfMark(body, at), end, isLast })
    if (isLast || marks.length > MAX_PARTS) break
    at = end
  }
  return marks
}

function startOfMark(body: Uint8Array, at: number): number {
  if (body[at - 1] !== LF) return at
  return body[at - 2] === CR ? at - 2 : at - 1
}

function partOf(bytes: Uint8Array<ArrayBuffer>): Part {
  const { headers, end } = headersOf(bytes)
  const fieldOf = (name: string): string | null =>
    headers.find((header) => header.name.toLowerCase() === name)?.value ?? null
  const { parameters } = mediaOf(fieldOf('content-disposition'))
  const content = bytes.slice(end)
  const isBase64 = /^base64$/i.test(fieldOf('content-transfer-encoding') ?? '')
  return {
    headers,
    name: parameters.get('name') ?? null,
    filename: extended(parameters.get('filename*')) ?? parameters.get('filename') ?? null,
    contentType: fieldOf('content-type'),
    bytes:
      (isBase64 ? base64Bytes((utf8Text(content) ?? '-').replaceAll(/\s/g, '')) : null) ?? content,
  }
}

function headersOf(bytes: Uint8Array): { headers: Part['headers']; end: number } {
  const headers: { name: string; value: string }[] = []
  let at = 0
  while (at < Math.min(bytes.length, MAX_HEADER_BYTES) && headers.length < MAX_HEADERS) {
    const found = bytes.indexOf(LF, at)
    const end = found === -1 ? bytes.length : found
    const line = textOfLine(bytes.subarray(at, end)).replace(/\r$/, '')
    const colon = line.indexOf(':')
    // An empty line ends the headers. Without one, what is no header is content already.
    if (line !== '' && colon <= 0) return { headers, end: at }
    at = Math.min(end + 1, bytes.length)
    if (line === '') break
    headers.push({ name: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim() })
  }
  return { headers, end: at }
}

/** A filename in the form of RFC 5987: a charset, a language, and percent-encoded bytes. */
function extended(value: string | undefined): string | null {
  const [, charset = '', encoded = ''] = /^([\w-]+)'[^']*'(.*)$/s.exec(value ?? '') ?? []
  if (!/^(?:utf-8|iso-8859-1)$/i.test(charset)) return null
  const bytes = Uint8Array.from(
    [...encoded.matchAll(/%([0-9a-f]{2})|[^%]/gi)].map(([char, digits]) =>
      digits === undefined ? char.charCodeAt(0) : Number.parseInt(digits, 16),
    ),
  )
  return /^utf/i.test(charset) ? utf8Text(bytes) : latin1(bytes)
}

const textOfLine = (bytes: Uint8Array): string => utf8Text(bytes) ?? latin1(bytes)

/** A character per byte. */
function latin1(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}

const latin1Bytes = (text: string): Uint8Array =>
  Uint8Array.from([...text].map((character) => character.charCodeAt(0) & 0xff))

function startsWith(body: Uint8Array, wanted: Uint8Array, at: number): boolean {
  return wanted.every((byte, index) => body[at + index] === byte)
}
