/** The state of a monitor at a given time, as pure functions of its facts. */
import { type Fairness, fairDeadline } from './fairness.ts'
import type { PulseState } from './schema.ts'
import type { MonitorRow } from './store.ts'

/** The facts that the state depends on. */
export type StateFacts = Pick<
  MonitorRow,
  | 'heartbeat_limit'
  | 'accepted_heartbeat_count'
  | 'last_ping_at'
  | 'expected_interval_seconds'
  | 'grace_seconds'
  | 'settings_changed_at'
  | 'state_since'
  | 'expires_at'
>

/** Times are unix milliseconds. The deadlines are null if no ping is expected. */
export type Standing = {
  state: PulseState
  stateChangedAt: number
  nextExpectedAt: number | null
  lateAt: number | null
}

/** Precedence: expired, then exhausted, then waiting, operational or late. */
export function standingAt(monitor: StateFacts, now: number, fairness: Fairness): Standing {
  const none = { nextExpectedAt: null, lateAt: null }
  const { last_ping_at: lastPingAt, expires_at: expiresAt } = monitor
  if (expiresAt <= now) return { state: 'expired', stateChangedAt: expiresAt, ...none }
  if (lastPingAt === null) {
    return { state: 'waiting', stateChangedAt: monitor.state_since, ...none }
  }
  if (monitor.accepted_heartbeat_count >= monitor.heartbeat_limit) {
    return { state: 'exhausted', stateChangedAt: lastPingAt, ...none }
  }
  const intervalMs = monitor.expected_interval_seconds * 1000
  const graceMs = monitor.grace_seconds * 1000
  const nextExpectedAt = lastPingAt + intervalMs
  const lateAt = fairDeadline({ nextExpectedAt, intervalMs, graceMs }, fairness.windows)
  if (now < lateAt || fairness.isHeld) {
    return { state: 'operational', stateChangedAt: monitor.state_since, nextExpectedAt, lateAt }
  }
  // Late since the deadline, unless the settings changed after it: then since `state_since`.
  const wasLate = monitor.settings_changed_at >= lateAt
  const stateChangedAt = wasLate ? monitor.state_since : lateAt
  return { state: 'late', stateChangedAt, nextExpectedAt, lateAt }
}

/** When time alone changes the state next, or null if it never does. While the clock is in doubt, nobody knows. */
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
