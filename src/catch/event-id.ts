/**
 * Event ids are UUIDv7 (RFC 9562 §5.7): the time of arrival, 26 random bits, and in the last 48
 * bits the sequence, as the counter that §6.2 allows. The sequence finds the row through the primary
 * key, so event ids need no index of their own.
 */

const EVENT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** `salt` is a 26-bit random number, `received_at` unix milliseconds. */
export function eventId(event: { received_at: number; salt: number; sequence: number }): string {
  const time = event.received_at.toString(16).padStart(12, '0')
  const randA = (event.salt & 0xfff).toString(16).padStart(3, '0')
  const randB = (0x8000 | (event.salt >>> 12)).toString(16)
  const counter = event.sequence.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randA}-${randB}-${counter}`
}

/** The sequence in an event id, or null for text that is not an event id. */
export function parseEventId(id: string): { sequence: number } | null {
  return EVENT_ID.test(id) ? { sequence: Number.parseInt(id.slice(-12), 16) } : null
}
