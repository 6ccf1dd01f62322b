/**
 * Fairness: a deadline waits for a job that could not reach the service. Pure functions of the blind windows,
 * the times in which the service could not receive pings.
 */
import type { BlindWindow } from '../lib/windows.ts'

/** When a ping is expected, and how long the service waits for it. Milliseconds. */
export type Expected = {
  nextExpectedAt: number
  graceMs: number
  /** When a job that has pinged in vain until this time pings again: an interval later, or at its next run. */
  expectedAfter(time: number): number
}

/**
 * When a missing ping is late. A blind window that overlaps the time from `nextExpectedAt` less the grace to
 * the deadline moves the deadline to one interval and grace after the window's end, because a job may have pinged
 * in vain, and pings again only after its interval. Other windows move nothing.
 */
export function fairDeadline(
  { nextExpectedAt, graceMs, expectedAfter }: Expected,
  windows: readonly BlindWindow[],
): number {
  let lateAt = nextExpectedAt + graceMs
  const matterFrom = nextExpectedAt - graceMs
  for (let at = firstEndingAt(windows, matterFrom); at < windows.length; at++) {
    const { beganAt, endedAt } = windows[at] as BlindWindow
    if (beganAt > lateAt) break
    lateAt = Math.max(lateAt, expectedAfter(endedAt) + graceMs)
  }
  return lateAt
}

/**
 * When a lateness opens what waits for it: after the grace or the service's wait, whichever is longer. A window that
 * overlaps that time moves it to as long after the first time that a ping is expected after the window.
 */
export function openingTime(
  { graceMs, expectedAfter }: Pick<Expected, 'graceMs' | 'expectedAfter'>,
  { lateAt, waitMs }: { lateAt: number; waitMs: number },
  windows: readonly BlindWindow[],
): number {
  const wait = Math.max(graceMs, waitMs)
  let opensAt = lateAt + wait
  for (let at = firstEndingAt(windows, lateAt + 1); at < windows.length; at++) {
    const { beganAt, endedAt } = windows[at] as BlindWindow
    if (beganAt > opensAt) break
    opensAt = Math.max(opensAt, expectedAfter(endedAt) + wait)
  }
  return opensAt
}

/** The index of the first window that ends at this time or after it. */
function firstEndingAt(windows: readonly BlindWindow[], time: number): number {
  let low = 0
  let high = windows.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((windows[middle] as BlindWindow).endedAt < time) low = middle + 1
    else high = middle
  }
  return low
}
