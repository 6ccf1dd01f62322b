/**
 * Event ids are UUIDv7 (RFC 9562 §5.7): the time of arrival, 26 random bits, and in the last 48
 * bits the sequence, as the counter that §6.2 allows. The sequence finds the row through the primary
 * key, so event ids need no index of their own.
 */

const EVENT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** `salt` is a 26-bit random number, `received_at` unix milliseconds. */
export function eventId(event: { received_at: number; salt: number; sequence: number }): string {
  const { received_at: time, salt, sequence } = event
  const randA = 0x7000 | (salt & 0xfff)
  const randB = 0x8000 | (salt >>> 12)
  return (
    `${hex4(time / 2 ** 32)}${hex4(time >>> 16)}-${hex4(time)}-${hex4(randA)}-${hex4(randB)}-` +
    `${hex4(sequence / 2 ** 32)}${hex4(sequence >>> 16)}${hex4(sequence)}`
  )
}

/** The last 16 bits as four hex digits, which is faster than padding what `toString` makes. */
const hex4 = (number: number): string => `${HEX[(number >>> 8) & 0xff]}${HEX[number & 0xff]}`
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** The sequence in an event id, or null for text that is not an event id. */
export function parseEventId(id: string): { sequence: number } | null {
  return EVENT_ID.test(id) ? { sequence: Number.parseInt(id.slice(-12), 16) } : null
}
