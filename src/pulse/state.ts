/** The state of a monitor at a given time, as pure functions of its facts. */
import { apart, type BlindWindow, type Expected, type Fairness, fairDeadline } from './fairness.ts'
import { nextRun } from './schedule.ts'
import type { PulseState } from './schema.ts'
import type { MonitorRow } from './store.ts'
import { suspensionsOf } from './takedown.ts'

/** Refused pings reach the store within this time of every instance. */
const SIGNS_ARRIVE_MS = 10_000
/** In doubt, the next look comes this soon. */
const LOOK_AGAIN_MS = 5_000
const DAY_MS = 24 * 60 * 60 * 1000

/** The facts that the state depends on. */
export type StateFacts = Pick<
  MonitorRow,
  | 'heartbeat_limit'
  | 'accepted_heartbeat_count'
  | 'last_ping_at'
  | 'expected_interval_seconds'
  | 'grace_seconds'
  | 'schedule_cron'
  | 'schedule_time_zone'
  | 'schedule_grace_seconds'
  | 'rescheduled_at'
  | 'late_since'
  | 'failed_at'
  | 'state_since'
  | 'expires_at'
  | 'suspensions'
>

/** The facts that decide when to look at a monitor next. */
export type LookFacts = StateFacts &
  Pick<MonitorRow, 'created_at' | 'is_silent' | 'alive_at' | 'is_expiry_told'>

/** Times are unix milliseconds. The deadlines are null if no ping is expected. */
export type Standing = {
  state: PulseState
  stateChangedAt: number
  nextExpectedAt: number | null
  lateAt: number | null
  /** The deadline that has passed without a ping, or null. A failed run is late without it. */
  lateSince: number | null
}

/** Precedence: expired, then exhausted, then waiting, operational or late. */
export function standingAt(monitor: StateFacts, now: number, fairness: Fairness): Standing {
  const none = { nextExpectedAt: null, lateAt: null, lateSince: monitor.late_since }
  const { expires_at: expiresAt, state_since: stateSince } = monitor
  if (expiresAt <= now) return { state: 'expired', stateChangedAt: expiresAt, ...none }
  if (monitor.accepted_heartbeat_count >= monitor.heartbeat_limit) {
    return { state: 'exhausted', stateChangedAt: stateSince, ...none }
  }
  const deadline = deadlineAt(monitor, now, fairness)
  if (deadline === null) return { state: 'waiting', stateChangedAt: stateSince, ...none }
  const lateness = latenessOf(monitor, deadline)
  return lateness === null
    ? { state: 'operational', stateChangedAt: stateSince, ...deadline }
    : { state: 'late', stateChangedAt: lateness.since, ...deadline }
}

/** Since when a monitor is late, and why: it misses a ping, or its last run failed. */
export type Lateness = { since: number; cause: 'silence' | 'failure' }

/** The lateness of a monitor at a time, whether or not it accepts pings any more. */
export function latenessAt(monitor: StateFacts, now: number, fairness: Fairness): Lateness | null {
  const deadline = deadlineAt(monitor, now, fairness)
  return deadline && latenessOf(monitor, deadline)
}

function latenessOf(
  { failed_at: failedAt }: StateFacts,
  { lateSince }: Pick<Standing, 'lateSince'>,
): Lateness | null {
  if (failedAt !== null && failedAt <= (lateSince ?? failedAt)) {
    return { since: failedAt, cause: 'failure' }
  }
  return lateSince === null ? null : { since: lateSince, cause: 'silence' }
}

/** The deadline of a monitor, and whether it has passed. Null before the first ping. */
function deadlineAt(
  monitor: StateFacts,
  now: number,
  fairness: Fairness,
): Pick<Standing, 'nextExpectedAt' | 'lateAt' | 'lateSince'> | null {
  const expected = expectedOf(monitor)
  if (expected === null) return null
  // A lateness that is stored stays, even if the service learns of a blind window afterwards.
  const lateAt = monitor.late_since ?? fairDeadline(expected, windowsOf(monitor, fairness))
  const isOver = monitor.late_since !== null || (now >= lateAt && !fairness.isHeld)
  return {
    ...{ nextExpectedAt: expected.nextExpectedAt, lateAt },
    lateSince: isOver ? lateAt : null,
  }
}

/** Whether more time and pings can be added: it has not expired, has pings left and is not suspended. */
export const isExtendable = (
  monitor: Pick<
    MonitorRow,
    'expires_at' | 'accepted_heartbeat_count' | 'heartbeat_limit' | 'suspended_at'
  >,
  now: number,
): boolean =>
  monitor.expires_at > now &&
  monitor.suspended_at === null &&
  monitor.accepted_heartbeat_count < monitor.heartbeat_limit

/**
 * When time alone changes the state next, or null if it never does. While the clock is in doubt, nobody knows.
 */
export function nextStateChangeAt(
  monitor: StateFacts,
  now: number,
  fairness: Fairness,
): number | null {
  const { state, lateAt } = standingAt(monitor, now, fairness)
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

/**
 * When a stored lateness is a silence: nothing has come for an interval and grace, not even a ping that was
 * refused. Null if the monitor is not late, or was found silent before.
 */
export function silentAt(monitor: LookFacts, fairness: Fairness): number | null {
  if (monitor.late_since === null || monitor.is_silent === 1) return null
  const sign = monitor.alive_at
  const expected = expectedOf({
    ...monitor,
    last_ping_at: sign === null ? monitor.last_ping_at : Math.max(sign, monitor.last_ping_at ?? 0),
  })
  if (expected === null) return null
  const deadline = fairDeadline(expected, windowsOf(monitor, fairness))
  // One that was late before it was suspended gets the time of a whole beat to show that its job lives.
  const resumedAt = suspensionsOf(monitor).at(-1)?.endedAt
  const shown = resumedAt === undefined ? 0 : expected.expectedAfter(resumedAt) + expected.graceMs
  return Math.max(deadline, shown, monitor.late_since) + SIGNS_ARRIVE_MS
}

/** The times in which this monitor could not be pinged, whatever the reason, apart from each other. */
export function windowsOf(
  monitor: Pick<MonitorRow, 'suspensions'>,
  { windows }: Fairness,
): readonly BlindWindow[] {
  return monitor.suspensions === '' ? windows : apart([...windows, ...suspensionsOf(monitor)])
}

/** When to look at a monitor next because time alone may have changed it, or null. */
export function nextLookAt(monitor: LookFacts, now: number, fairness: Fairness): number | null {
  const { state, lateAt } = standingAt(monitor, now, fairness)
  if (state === 'expired' || state === 'exhausted') return null
  const looks = [
    monitor.is_expiry_told === 1 ? null : expiringAt(monitor),
    monitor.late_since === null ? lateAt : silentLookAt(monitor, now, fairness),
  ].filter((time) => time !== null)
  if (looks.length === 0) return null
  const next = Math.min(...looks)
  return next <= now && fairness.isHeld ? now + LOOK_AGAIN_MS : next
}

/** In doubt, a silence proves nothing, and is looked at again. */
function silentLookAt(monitor: LookFacts, now: number, fairness: Fairness): number | null {
  const at = silentAt(monitor, fairness)
  return at !== null && fairness.isDoubtful ? Math.max(at, now + LOOK_AGAIN_MS) : at
}

/** What a monitor expects after its last ping, or after interval and grace were changed; null before the first ping. */
export function expectedOf(
  monitor: Pick<
    MonitorRow,
    | 'last_ping_at'
    | 'rescheduled_at'
    | 'expected_interval_seconds'
    | 'grace_seconds'
    | 'schedule_cron'
    | 'schedule_time_zone'
    | 'schedule_grace_seconds'
    | 'expires_at'
  >,
): Expected | null {
  if (monitor.last_ping_at === null) return null
  const from = Math.max(monitor.last_ping_at, monitor.rescheduled_at)
  const { schedule_cron: cron, schedule_time_zone: timeZone } = monitor
  const intervalMs = monitor.expected_interval_seconds * 1000
  const expectedAfter =
    cron === ''
      ? (time: number) => time + intervalMs
      : (time: number) => nextRun({ cron, timeZone }, time) ?? monitor.expires_at
  const graceSeconds = cron === '' ? monitor.grace_seconds : monitor.schedule_grace_seconds
  return { nextExpectedAt: expectedAfter(from), graceMs: graceSeconds * 1000, expectedAfter }
}
