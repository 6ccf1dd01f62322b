/** The state of a monitor: what its facts mean at a given time. Pure, so that it can be walked. */
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

/** Times are unix milliseconds; the deadlines are null where no ping is expected. */
export type Standing = {
  state: PulseState
  stateChangedAt: number
  nextExpectedAt: number | null
  lateAt: number | null
}

/** expired > exhausted > (waiting | operational | late). */
export function standingAt(monitor: StateFacts, now: number): Standing {
  const none = { nextExpectedAt: null, lateAt: null }
  const { last_ping_at: lastPingAt, expires_at: expiresAt } = monitor
  if (expiresAt <= now) return { state: 'expired', stateChangedAt: expiresAt, ...none }
  if (lastPingAt === null) {
    return { state: 'waiting', stateChangedAt: monitor.state_since, ...none }
  }
  if (monitor.accepted_heartbeat_count >= monitor.heartbeat_limit) {
    return { state: 'exhausted', stateChangedAt: lastPingAt, ...none }
  }
  const nextExpectedAt = lastPingAt + monitor.expected_interval_seconds * 1000
  const lateAt = nextExpectedAt + monitor.grace_seconds * 1000
  if (now < lateAt) {
    return { state: 'operational', stateChangedAt: monitor.state_since, nextExpectedAt, lateAt }
  }
  // Late by itself when the deadline passed; or made so, or left so, by a change of settings.
  const wasLate = monitor.settings_changed_at >= lateAt
  const stateChangedAt = wasLate ? monitor.state_since : lateAt
  return { state: 'late', stateChangedAt, nextExpectedAt, lateAt }
}

/** When the state changes next if nobody does anything, or null where it never will. */
export function nextStateChangeAt(monitor: StateFacts, now: number): number | null {
  const { state, lateAt } = standingAt(monitor, now)
  if (state === 'expired') return null
  return state === 'operational' && lateAt !== null
    ? Math.min(lateAt, monitor.expires_at)
    : monitor.expires_at
}
