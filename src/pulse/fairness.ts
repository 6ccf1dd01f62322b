/**
 * Fairness: a deadline waits for a job that could not reach the service. Pure functions of the blind windows,
 * the times in which the service could not receive pings.
 */

/** From the last sign that pings could be received to the next one, in unix milliseconds. */
export type BlindWindow = { beganAt: number; endedAt: number }

/** What an instance knows about the service's own eyes. */
export type Fairness = {
  /** Apart from each other, in the order of time. */
  windows: readonly BlindWindow[]
  /** The clock has jumped and is in doubt: no deadline passes until it is trusted again. */
  isHeld: boolean
  /** Pings may not reach the service just now, so that what seems late may be its own fault. */
  isDoubtful: boolean
}

/** When a ping is expected, and how long the service waits for it. Milliseconds. */
export type Expected = {
  nextExpectedAt: number
  graceMs: number
  /** When a job that has pinged in vain until this time pings again: an interval later, or at its next run. */
  expectedAfter(time: number): number
}

export const ALWAYS_SEEING: Fairness = { windows: [], isHeld: false, isDoubtful: false }

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

/** The same times without overlaps, in their order. */
export function apart(windows: readonly BlindWindow[]): BlindWindow[] {
  const joined: BlindWindow[] = []
  for (const { beganAt, endedAt } of windows.toSorted((a, b) => a.beganAt - b.beganAt)) {
    const last = joined.at(-1)
    if (last && beganAt <= last.endedAt) last.endedAt = Math.max(last.endedAt, endedAt)
    else joined.push({ beganAt, endedAt })
  }
  return joined
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
