/**
 * How often a destination gets something, what it gets once there is more than that, and when a message is tried again.
 */
import type { AlertRow, DestinationRow } from './store.ts'

/** At most one alert a minute and 60 a day: more of them say no more, and could flood a stranger. */
const PAUSE_MS = 60_000
const PER_DAY = 60
const DAY_MS = 24 * 60 * 60 * 1000

export type Turn = {
  /** The alert whose turn it is. */
  alert: AlertRow
  /** Those that are never sent, because a later state says more. */
  dropped: number[]
}

/**
 * The turn of a destination with waiting alerts, in their order. Those that the pace held back are coalesced to
 * the last state; warnings are all sent.
 */
export function nextTurn(
  destination: Pick<DestinationRow, 'not_before'>,
  waiting: readonly AlertRow[],
): Turn | null {
  const [first] = waiting
  if (!first) return null
  const readyAt = Math.max(first.occurred_at, first.not_before)
  const isHeldBack = first.attempts === 0 && readyAt < destination.not_before
  if (!isHeldBack) return { alert: first, dropped: [] }
  const lastState = waiting.findLast(({ replaces }) => replaces === 1)
  const isDropped = (alert: AlertRow): boolean => alert.replaces === 1 && alert !== lastState
  const alert = waiting.find((some) => !isDropped(some)) ?? first
  return { alert, dropped: waiting.filter(isDropped).map(({ position }) => position) }
}

/** Those that may be told now: what comes after one that must wait for its time waits with it. */
export function ready(waiting: readonly AlertRow[], now: number): AlertRow[] {
  const first = waiting.findIndex(({ not_before: notBefore }) => notBefore > now)
  return first === -1 ? [...waiting] : waiting.slice(0, first)
}

/** The pace after an alert was sent for the first time. Its repeats count no more. */
export function paceAfter(
  destination: Pick<DestinationRow, 'day_started_at' | 'day_count'>,
  now: number,
): Pick<DestinationRow, 'not_before' | 'day_started_at' | 'day_count'> {
  const { day_started_at: startedAt } = destination
  const isOver = now >= startedAt + DAY_MS
  const day_started_at = isOver ? now : startedAt
  const day_count = isOver ? 1 : destination.day_count + 1
  const not_before = day_count >= PER_DAY ? day_started_at + DAY_MS : now + PAUSE_MS
  return { not_before, day_started_at, day_count }
}

/** The schedule that Standard Webhooks recommend. */
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
