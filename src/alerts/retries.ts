/** When a message is tried again: the schedule that Standard Webhooks recommend. */

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The pause after each failed attempt. After the last one the message is given up. */
const PAUSES = [
  ...[5 * SECOND, 5 * MINUTE, 30 * MINUTE],
  ...[2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR],
]

/** A receiver that asks for more patience than this gets no more. */
const MAX_PAUSE = 24 * HOUR

/** `Date.parse` reads much more, such as a minus sign as a month. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/**
 * The pause before the next attempt in milliseconds, or null if the message is given up.
 * @param attempts how many have failed, at least 1.
 * @param retryAfterMs what the receiver asked for, if it did.
 */
export function pauseAfter(attempts: number, retryAfterMs: number | null): number | null {
  const pause = PAUSES[attempts - 1]
  if (pause === undefined) return null
  return Math.max(pause, Math.min(retryAfterMs ?? 0, MAX_PAUSE))
}

/** The milliseconds of a Retry-After (RFC 9110 §10.2.3), or null. */
export function retryAfterMs(value: unknown, now: number): number | null {
  if (typeof value !== 'string') return null
  if (/^\d{1,9}$/.test(value)) return Number(value) * SECOND
  const until = HTTP_DATE.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(until) ? null : Math.max(0, until - now)
}
