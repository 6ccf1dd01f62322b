/** Bytes and their text encodings. */

const encoder = new TextEncoder()
const asciiDecoder = new TextDecoder()
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export const utf8 = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text)

/** The text, or null if the bytes are not UTF-8. */
export function utf8Text(bytes: Uint8Array): string | null {
  try {
    return strictDecoder.decode(bytes)
  } catch {
    return null
  }
}

export function concat(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/**
 * The chunks of a body, where browsers cannot iterate it. Leaving the loop ends its request.
 * @param inTime waits for each of them, and may give it up.
 */
export async function* chunksOf(
  body: ReadableStream<Uint8Array> | null,
  inTime = <T>(work: Promise<T>): Promise<T> => work,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (body === null) return
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await inTime(reader.read())
      if (done) return
      yield value
    }
  } finally {
    // Not awaited: on a lost connection this may never resolve.
    reader.cancel().catch(() => undefined)
  }
}

/**
 * All bytes of a stream, which ends at once if there are more.
 * @throws Error what `tooLarge` makes.
 */
export async function boundedBytes(
  stream: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  most: number,
  tooLarge: () => Error,
): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of stream) {
    length += part.length
    // Leaving the loop destroys the stream and its connection.
    if (length > most) throw tooLarge()
    parts.push(part)
  }
  return concat(...parts)
}

/** Lower-case hex. */
export function hex(bytes: Uint8Array): string {
  let text = ''
  for (let i = 0; i < bytes.length; i++) text += HEX[bytes[i] ?? 0]
  return text
}

/** Bytes of hex in either case, or null. */
export function hexBytes(text: string): Uint8Array<ArrayBuffer> | null {
  if (text.length % 2 !== 0) return null
  const bytes = new Uint8Array(text.length / 2)
  for (let i = 0; i < bytes.length; i++) {
    const high = HEX_VALUES[text.charCodeAt(2 * i)] ?? NO_DIGIT
    const low = HEX_VALUES[text.charCodeAt(2 * i + 1)] ?? NO_DIGIT
    if (high === NO_DIGIT || low === NO_DIGIT) return null
    bytes[i] = high * 16 + low
  }
  return bytes
}

/** Standard base64 with padding. */
export function base64(bytes: Uint8Array): string {
  return base64Text(bytes, BASE64, Math.ceil(bytes.length / 3) * 4)
}

/** base64url without padding (RFC 4648 §5). */
export function base64url(bytes: Uint8Array): string {
  return base64Text(bytes, BASE64URL, Math.ceil((bytes.length * 4) / 3))
}

/**
 * Bytes of base64 in either alphabet, padded or not; null for anything else. Unused bits at the end must be
 * zero, and padding must be complete, so that spellings of one value differ in alphabet and padding only.
 */
export function base64Bytes(text: string): Uint8Array<ArrayBuffer> | null {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const length = text.length - padding
  if (length % 4 === 1 || (padding > 0 && text.length % 4 !== 0)) return null
  const bytes = new Uint8Array(Math.floor((length * 3) / 4))
  let pending = 0
  let bits = 0
  let at = 0
  for (let i = 0; i < length; i++) {
    const value = BASE64_VALUES[text.charCodeAt(i)] ?? NO_DIGIT
    if (value === NO_DIGIT) return null
    pending = ((pending << 6) | value) & 0xfff
    bits += 6
    if (bits >= 8) {
      bits -= 8
      bytes[at++] = pending >>> bits
    }
  }
  return (pending & ((1 << bits) - 1)) === 0 ? bytes : null
}

// Tables, because these functions run several times per purchase, and a function call for each byte would
// double their time.
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const BASE64 = utf8(`${LETTERS}+/`)
const BASE64URL = utf8(`${LETTERS}-_`)
const NO_DIGIT = 255
const HEX_VALUES = valuesOf('0123456789abcdef', '0123456789ABCDEF')
const BASE64_VALUES = valuesOf(`${LETTERS}+/`, `${LETTERS}-_`)

/** The value of each ASCII character as a digit of these alphabets. */
function valuesOf(...alphabets: string[]): Uint8Array {
  const values = new Uint8Array(128).fill(NO_DIGIT)
  for (const digits of alphabets) {
    for (const [value, digit] of [...digits].entries()) values[digit.charCodeAt(0)] = value
  }
  return values
}

/** Pads the digits to `length` characters. */
function base64Text(bytes: Uint8Array, digits: Uint8Array, length: number): string {
  const text = new Uint8Array(length).fill('='.charCodeAt(0))
  let pending = 0
  let bits = 0
  let at = 0
  for (let i = 0; i < bytes.length; i++) {
    pending = ((pending << 8) | (bytes[i] ?? 0)) & 0x3fff
    for (bits += 8; bits >= 6; at++) {
      bits -= 6
      text[at] = digits[(pending >>> bits) & 63] ?? 0
    }
  }
  if (bits > 0) text[at] = digits[(pending << (6 - bits)) & 63] ?? 0
  return asciiDecoder.decode(text)
}

/** Compares in time that depends on the lengths only. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= (a[i] ?? 0) ^ (b[i] ?? 0)
  return difference === 0
}
