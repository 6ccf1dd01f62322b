/**
 * Bech32 (BIP 173), and the packing of bytes into its words of five bits. There is no limit of 90 characters:
 * BOLT 11 and LUD-01 lift it.
 */

const ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const CHECKSUM_WORDS = 6

const CODES = Uint8Array.from(ALPHABET, (digit) => digit.charCodeAt(0))
const NOT_A_DIGIT = 255
const WORDS = new Uint8Array(128).fill(NOT_A_DIGIT)
for (const [word, code] of CODES.entries()) WORDS[code] = word

const GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]
// The feedback for each value of the five bits that leave the register, so that one look-up replaces five
// tests.
const FEEDBACK = Uint32Array.from({ length: 32 }, (_, top) =>
  GENERATOR.reduce((sum, term, bit) => ((top >>> bit) & 1 ? sum ^ term : sum), 0),
)

const ascii = new TextDecoder()

/** The lower-case prefix and the words between it and the checksum. */
export type Bech32 = { prefix: string; words: Uint8Array<ArrayBuffer> }

/** The parts of a text, or null if it mixes cases or its form or checksum is wrong (BIP 173). */
export function decodeBech32(text: string): Bech32 | null {
  // ASCII is checked first, because lower-casing turns the Kelvin sign into a "k".
  if (!/^[!-~]+$/.test(text)) return null
  const lower = text.toLowerCase()
  if (text !== lower && text !== text.toUpperCase()) return null

  const separator = lower.lastIndexOf('1')
  const length = lower.length - separator - 1
  if (separator < 1 || length < CHECKSUM_WORDS) return null
  const prefix = lower.slice(0, separator)
  const words = new Uint8Array(length)
  for (let i = 0; i < length; i++) {
    const word = WORDS[lower.charCodeAt(separator + 1 + i)] ?? NOT_A_DIGIT
    if (word === NOT_A_DIGIT) return null
    words[i] = word
  }
  return remainder(prefix, words) === 1
    ? { prefix, words: words.subarray(0, length - CHECKSUM_WORDS) }
    : null
}

/** The lower-case text of a prefix, itself in lower case, and words. */
export function encodeBech32(prefix: string, words: Uint8Array): string {
  let rest = remainder(prefix, words)
  for (let i = 0; i < CHECKSUM_WORDS; i++) rest = step(rest, 0)
  rest ^= 1

  const codes = new Uint8Array(words.length + CHECKSUM_WORDS)
  for (let i = 0; i < words.length; i++) codes[i] = CODES[words[i] ?? 0] ?? 0
  for (let i = 0; i < CHECKSUM_WORDS; i++) {
    codes[words.length + i] = CODES[(rest >>> (5 * (CHECKSUM_WORDS - 1 - i))) & 31] ?? 0
  }
  return `${prefix}1${ascii.decode(codes)}`
}

/** Bytes as words, with zero bits to fill the last one. */
export function bytesToWords(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const words = new Uint8Array(Math.ceil((bytes.length * 8) / 5))
  let pending = 0
  let bits = 0
  let at = 0
  for (let i = 0; i < bytes.length; i++) {
    pending = ((pending << 8) | (bytes[i] ?? 0)) & 0xfff
    for (bits += 8; bits >= 5; at++) {
      bits -= 5
      words[at] = (pending >>> bits) & 31
    }
  }
  if (bits > 0) words[at] = (pending << (5 - bits)) & 31
  return words
}

/** Words as bytes, with zero bits to fill the last one: the form that BOLT 11 signs. */
export function packWords(words: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(Math.ceil((words.length * 5) / 8))
  let pending = 0
  let bits = 0
  let at = 0
  for (let i = 0; i < words.length; i++) {
    pending = ((pending << 5) | (words[i] ?? 0)) & 0xfff
    bits += 5
    if (bits >= 8) {
      bits -= 8
      bytes[at++] = pending >>> bits
    }
  }
  if (bits > 0) bytes[at] = pending << (8 - bits)
  return bytes
}

/** The bytes that `bytesToWords` turned into these words; null if a word is left over or padding is not zero. */
export function wordsToBytes(words: Uint8Array): Uint8Array<ArrayBuffer> | null {
  const length = Math.floor((words.length * 5) / 8)
  const bytes = packWords(words)
  if (words.length * 5 - length * 8 >= 5 || (bytes[length] ?? 0) !== 0) return null
  return bytes.subarray(0, length)
}

function remainder(prefix: string, words: Uint8Array): number {
  let rest = 1
  for (let i = 0; i < prefix.length; i++) rest = step(rest, prefix.charCodeAt(i) >>> 5)
  rest = step(rest, 0)
  for (let i = 0; i < prefix.length; i++) rest = step(rest, prefix.charCodeAt(i) & 31)
  for (let i = 0; i < words.length; i++) rest = step(rest, words[i] ?? 0)
  return rest
}

function step(rest: number, word: number): number {
  return ((rest & 0x1ffffff) << 5) ^ word ^ (FEEDBACK[rest >>> 25] ?? 0)
}
