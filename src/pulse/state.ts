/** The state of a monitor at a given time, as pure functions of its facts. Times are unix milliseconds. */
import { apart, type BlindWindow } from '../lib/windows.ts'
import { nextRun } from './schedule.ts'
import type { PulseState } from './schema.ts'
import type { MonitorRow } from './store.ts'
import { suspensionsOf } from './takedown.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** When nobody could reach the service: apart from each other, in the order of time. */
export type Windows = readonly BlindWindow[]

/** When a monitor expects pings: by its interval, or by its schedule if there is one. */
export type Timing = {
  intervalSeconds: number
  graceSeconds: number
  /** Empty: there is none. */
  cron: string
  timeZone: string
}

/** What waits for the silence of a monitor: the timings that it had when each secret was bound. */
export type Bound = { timings: readonly Timing[]; waitMs: number }

/** The deadlines are null if no ping is expected. */
export type Standing = {
  state: PulseState
  stateChangedAt: number
  nextExpectedAt: number | null
  lateAt: number | null
  /** The deadline that has passed without a ping, or null. A failed run is late without it. */
  lateSince: number | null
}

/** Precedence: expired, then exhausted, then waiting, operational or late. */
export function standingAt(monitor: MonitorRow, now: number, windows: Windows): Standing {
  const none = { nextExpectedAt: null, lateAt: null, lateSince: monitor.late_since }
  const { expires_at: expiresAt, state_since: stateSince } = monitor
  if (expiresAt <= now) return { state: 'expired', stateChangedAt: expiresAt, ...none }
  if (isUsedUp(monitor)) return { state: 'exhausted', stateChangedAt: stateSince, ...none }
  const deadline = deadlineAt(monitor, now, windows)
  if (deadline === null) return { state: 'waiting', stateChangedAt: stateSince, ...none }
  const lateness = latenessOf(monitor, deadline.lateSince)
  return lateness === null
    ? { state: 'operational', stateChangedAt: stateSince, ...deadline }
    : { state: 'late', stateChangedAt: lateness.since, ...deadline }
}

/** Since when a monitor is late, and why: it misses a ping, or its last run failed. */
export type Lateness = { since: number; cause: 'silence' | 'failure' }

/** The lateness of a monitor at a time, whether or not it accepts pings any more. */
export function latenessAt(monitor: MonitorRow, now: number, windows: Windows): Lateness | null {
  const deadline = deadlineAt(monitor, now, windows)
  return deadline && latenessOf(monitor, deadline.lateSince)
}

function latenessOf(
  { failed_at: failedAt }: MonitorRow,
  lateSince: number | null,
): Lateness | null {
  if (failedAt !== null && failedAt <= (lateSince ?? failedAt)) {
    return { since: failedAt, cause: 'failure' }
  }
  return lateSince === null ? null : { since: lateSince, cause: 'silence' }
}

/** The deadline of a monitor, and whether it has passed. Null before the first ping. */
function deadlineAt(
  monitor: MonitorRow,
  now: number,
  windows: Windows,
): Pick<Standing, 'nextExpectedAt' | 'lateAt' | 'lateSince'> | null {
  const { last_ping_at: lastPingAt, late_since: stored } = monitor
  if (lastPingAt === null) return null
  const from = Math.max(lastPingAt, monitor.rescheduled_at)
  const expected = expectedBy(timingOf(monitor), from, monitor.expires_at)
  // A lateness that is stored stays, even if the service learns of a blind window afterwards.
  const lateAt = stored ?? fairDeadline(expected, windowsOf(monitor, windows))
  const isLate = stored !== null || now >= lateAt
  return {
    nextExpectedAt: expected.nextExpectedAt,
    lateAt,
    lateSince: isLate ? lateAt : null,
  }
}

/** The lateness that begins without being stored yet. One that is due at the end of the monitor begins no more. */
export function newLateness(monitor: MonitorRow, now: number, windows: Windows): number | null {
  if (monitor.late_since !== null || isUsedUp(monitor)) return null
  const lateSince = deadlineAt(monitor, now, windows)?.lateSince ?? null
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

export const timingOf = (monitor: MonitorRow): Timing => ({
  intervalSeconds: monitor.expected_interval_seconds,
  graceSeconds:
    monitor.schedule_cron === '' ? monitor.grace_seconds : monitor.schedule_grace_seconds,
  cron: monitor.schedule_cron,
  timeZone: monitor.schedule_time_zone,
})

/** When a ping is expected, and how long the service waits for it. */
export type Expected = {
  nextExpectedAt: number
  graceMs: number
  /** When a job that has pinged in vain until this time pings again: an interval later, or at its next run. */
  expectedAfter(time: number): number
}

/** What is expected after a time. @param endsAt stands for the next run of a schedule that has none. */
export function expectedBy(timing: Timing, from: number, endsAt: number): Expected {
  const { intervalSeconds, graceSeconds, cron, timeZone } = timing
  const expectedAfter =
    cron === ''
      ? (time: number) => time + intervalSeconds * 1000
      : (time: number) => nextRun({ cron, timeZone }, time) ?? Math.max(endsAt, time)
  return { nextExpectedAt: expectedAfter(from), graceMs: graceSeconds * 1000, expectedAfter }
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
