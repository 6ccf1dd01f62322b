/** base62 (`0-9A-Za-z`) of fixed-width numbers: 16 bytes are 22 digits, 32 bytes are 43. */

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const BASE = 62n

/** The bytes as one big-endian number, in as many digits as that width can need. */
export function base62(bytes: Uint8Array): string {
  let value = 0n
  for (const byte of bytes) value = (value << 8n) | BigInt(byte)
  const width = Math.ceil((bytes.length * 8) / Math.log2(62))
  let text = ''
  for (let i = 0; i < width; i++) {
    text = DIGITS.charAt(Number(value % BASE)) + text
    value /= BASE
  }
  return text
}

/** `value`, a whole number, in exactly `width` digits. */
export function base62Number(value: number, width: number): string {
  let rest = value
  let text = ''
  for (let i = 0; i < width; i++) {
    text = DIGITS.charAt(rest % 62) + text
    rest = Math.floor(rest / 62)
  }
  return text
}
