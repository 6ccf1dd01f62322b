/** CRC-32 (ISO 3309, as in zip and PNG), which distinguishes a typo from a wrong token. */

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

/** Unsigned 32-bit CRC of an ASCII text. */
export function crc32(ascii: string): number {
  let crc = 0xffffffff
  for (let i = 0; i < ascii.length; i++) {
    crc = (TABLE[(crc ^ ascii.charCodeAt(i)) & 0xff] ?? 0) ^ (crc >>> 8)
  }
  return (crc ^ 0xffffffff) >>> 0
}
