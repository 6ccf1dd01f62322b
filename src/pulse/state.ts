/**
 * What the facts of a monitor say at a time: its state, its deadlines, and when to look at it again. `transition.ts` has
 * what changes the facts. Times are unix milliseconds.
 */
import { apart, type BlindWindow } from '../lib/windows.ts'
import { type Expected, expectedBy, type Timing, timingOf } from './schedule.ts'
import type { PulseState } from './schema.ts'
import type { MonitorRow } from './store.ts'
import { suspensionsOf } from './takedown.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** When nobody could reach the service: apart from each other, in the order of time. */
export type Windows = readonly BlindWindow[]

/** What waits for the silence of a monitor: the timings that it had when each secret was bound. */
export type Bound = { timings: readonly Timing[]; waitMs: number }

export type Standing = {
  state: PulseState
  stateChangedAt: number
  /** The deadlines are null if no ping is expected. */
  nextExpectedAt: number | null
  lateAt: number | null
  /** The deadline that has passed without a ping, or null. A failed run is late without it. */
  lateSince: number | null
  /** Since when it is late, and why, whether or not it accepts pings any more; null if it is not late. */
  lateness: { since: number; cause: 'silence' | 'failure' } | null
}

/** Precedence: expired, then exhausted, then waiting, operational or late. */
export function standingAt(monitor: MonitorRow, now: number, windows: Windows): Standing {
  const { expires_at: expiresAt, state_since: stateSince, failed_at: failedAt } = monitor
  const deadline = deadlineOf(monitor, windows)
  const isLate = monitor.late_since !== null || (deadline !== null && now >= deadline.lateAt)
  const lateSince = isLate && deadline ? deadline.lateAt : null
  const lateness: Standing['lateness'] =
    failedAt !== null && failedAt <= (lateSince ?? failedAt)
      ? { since: failedAt, cause: 'failure' }
      : lateSince === null
        ? null
        : { since: lateSince, cause: 'silence' }
  const none = { nextExpectedAt: null, lateAt: null, lateSince, lateness }
  if (expiresAt <= now) return { state: 'expired', stateChangedAt: expiresAt, ...none }
  if (isUsedUp(monitor)) return { state: 'exhausted', stateChangedAt: stateSince, ...none }
  if (deadline === null) return { state: 'waiting', stateChangedAt: stateSince, ...none }
  const stateChangedAt = lateness?.since ?? stateSince
  const state = lateness === null ? 'operational' : 'late'
  return { state, stateChangedAt, ...deadline, lateSince, lateness }
}

/** When a ping is expected and when it is late, or null before the first one. */
function deadlineOf(
  monitor: MonitorRow,
  windows: Windows,
): { nextExpectedAt: number; lateAt: number } | null {
  const { last_ping_at: lastPingAt, late_since: stored } = monitor
  if (lastPingAt === null) return null
  const from = Math.max(lastPingAt, monitor.rescheduled_at)
  const expected = expectedBy(timingOf(monitor), from, monitor.expires_at)
  // A lateness that is stored stays, even if the service learns of a blind window afterwards.
  const lateAt = stored ?? fairDeadline(expected, windowsOf(monitor, windows))
  return { nextExpectedAt: expected.nextExpectedAt, lateAt }
}

/** The lateness that begins without being stored yet. One that is due at the end of the monitor begins no more. */
export function newLateness(monitor: MonitorRow, now: number, windows: Windows): number | null {
  if (monitor.late_since !== null || isUsedUp(monitor)) return null
  const { lateSince } = standingAt(monitor, now, windows)
  return lateSince !== null && lateSince < monitor.expires_at ? lateSince : null
}

const isUsedUp = (monitor: MonitorRow): boolean =>
  monitor.accepted_heartbeat_count >= monitor.heartbeat_limit

/** Whether it accepts pings, and so can be extended: it has not expired, has pings left and is not suspended. */
export const isActive = (monitor: MonitorRow, now: number): boolean =>
  monitor.expires_at > now && monitor.suspended_at === null && !isUsedUp(monitor)

/** When time alone changes the state next, or null if it never does. */
export function nextStateChangeAt(
  monitor: MonitorRow,
  now: number,
  windows: Windows,
): number | null {
  const { state, lateAt } = standingAt(monitor, now, windows)
  if (state === 'expired') return null
  return state === 'operational' && lateAt !== null && lateAt > now
    ? Math.min(lateAt, monitor.expires_at)
    : monitor.expires_at
}

/** When the owner is told that the monitor ends soon: a day before, or a tenth of a short life. */
export const expiringAt = ({
  created_at: createdAt,
  expires_at: expiresAt,
}: Pick<MonitorRow, 'created_at' | 'expires_at'>): number =>
  expiresAt - Math.min(DAY_MS, Math.floor((expiresAt - createdAt) / 10))

/** Whether a lateness is stored that may still become a silence. */
export const isFallingSilent = (monitor: MonitorRow): boolean =>
  monitor.late_since !== null && monitor.is_silent === 0

/**
 * When the silence of a late monitor opens what waits for it: the longest wait of the timings that the monitor has
 * and had when secrets were bound, so that a shorter interval opens nothing earlier. Null if nothing waits.
 */
export function opensAt(monitor: MonitorRow, bound: Bound, windows: Windows): number | null {
  const { late_since: lateSince, expires_at: endsAt } = monitor
  if (lateSince === null || !isFallingSilent(monitor) || bound.timings.length === 0) return null
  const from = Math.max(monitor.last_ping_at ?? 0, monitor.rescheduled_at)
  const unseen = windowsOf(monitor, windows)
  const times = [timingOf(monitor), ...bound.timings].map((timing) => {
    const expected = expectedBy(timing, from, endsAt)
    const lateAt = Math.max(fairDeadline(expected, unseen), lateSince)
    return openingTime(expected, { lateAt, waitMs: bound.waitMs }, unseen)
  })
  return Math.max(...times)
}

/** The times in which this monitor could not be pinged, whatever the reason, apart from each other. */
export function windowsOf(monitor: Pick<MonitorRow, 'suspensions'>, windows: Windows): Windows {
  return monitor.suspensions === '' ? windows : apart([...windows, ...suspensionsOf(monitor)])
}

/** When to look at a monitor next because time alone may have changed it, or null. */
export function nextLookAt(
  monitor: MonitorRow,
  now: number,
  { windows, bound }: { windows: Windows; bound: Bound },
): number | null {
  const opening = opensAt(monitor, bound, windows)
  const { state, lateAt } = standingAt(monitor, now, windows)
  if (state === 'exhausted') return null
  if (state === 'expired') return newLateness(monitor, now, windows) ?? opening
  const looks = [
    monitor.is_expiry_told === 1 ? null : expiringAt(monitor),
    monitor.late_since === null ? lateAt : opening,
  ].filter((time) => time !== null)
  return looks.length === 0 ? null : Math.min(...looks)
}

/**
 * When a missing ping is late. A blind window that overlaps the time from `nextExpectedAt` less the grace to
 * the deadline moves the deadline to one interval and grace after the window's end, because a job may have pinged
 * in vain, and pings again only after its interval. Other windows move nothing.
 */
export function fairDeadline(
  { nextExpectedAt, graceMs, expectedAfter }: Expected,
  windows: Windows,
): number {
  let lateAt = nextExpectedAt + graceMs
  for (const { beganAt, endedAt } of windows) {
    if (endedAt < nextExpectedAt - graceMs) continue
    if (beganAt > lateAt) break
    lateAt = Math.max(lateAt, expectedAfter(endedAt) + graceMs)
  }
  return lateAt
}

/**
 * When a lateness opens what waits for it: after the grace or the service's wait, whichever is longer. A window that
 * overlaps that time moves it to as long after the first time that a ping is expected after the window.
 */
function openingTime(
  { graceMs, expectedAfter }: Expected,
  { lateAt, waitMs }: { lateAt: number; waitMs: number },
  windows: Windows,
): number {
  const wait = Math.max(graceMs, waitMs)
  let opening = lateAt + wait
  for (const { beganAt, endedAt } of windows) {
    if (endedAt <= lateAt) continue
    if (beganAt > opening) break
    opening = Math.max(opening, expectedAfter(endedAt) + wait)
  }
  return opening
}
