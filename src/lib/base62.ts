/** base62 (`0-9A-Za-z`) of fixed-width numbers: 16 bytes are 22 digits, 32 bytes are 43. */

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
// Three digits at a time: the remainder of a step, shifted by eight bits, is still a small integer.
const [STEP_DIGITS, STEP] = [3, 62 ** 3]

/** The bytes as one big-endian number, with as many digits as the largest number of that width needs. */
export function base62(bytes: Uint8Array): string {
  const width = Math.ceil((bytes.length * 8) / Math.log2(62))
  const rest = Uint32Array.from(bytes)
  let text = ''
  for (let first = 0; text.length < width; ) {
    let remainder = 0
    for (let at = first; at < rest.length; at++) {
      const value = remainder * 256 + (rest[at] ?? 0)
      remainder = value % STEP
      rest[at] = (value - remainder) / STEP
    }
    while (rest[first] === 0) first++
    text = base62Number(remainder, Math.min(STEP_DIGITS, width - text.length)) + text
  }
  return text
}

/** `value` in exactly `width` digits. */
export function base62Number(value: number, width: number): string {
  let text = ''
  let rest = value
  for (let i = 0; i < width; i++) {
    text = DIGITS.charAt(rest % 62) + text
    rest = Math.floor(rest / 62)
  }
  return text
}
