import assert from 'node:assert/strict'
import { test } from 'node:test'
import { timingOf } from '../../src/pulse/schedule.ts'
import { nextStateChangeAt, opensAt, standingAt } from '../../src/pulse/state.ts'
import type { MonitorRow } from '../../src/pulse/store.ts'
import { suspensionsOf } from '../../src/pulse/takedown.ts'

const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const EXPIRES = T + 24 * HOUR

/** Made at T, for a day, with room for three pings, a minute of interval and two of grace. */
const aMonitor = (facts: Partial<MonitorRow> = {}): MonitorRow =>
  ({
    heartbeat_limit: 3,
    accepted_heartbeat_count: 0,
    last_ping_at: null,
    expected_interval_seconds: 60,
    grace_seconds: 120,
    schedule: '',
    rescheduled_at: 0,
    late_since: null,
    failed_at: null,
    state_since: T,
    created_at: T,
    is_silent: 0,
    expires_at: EXPIRES,
    suspensions: '',
    ...facts,
  }) as MonitorRow

const PINGED = T + HOUR
const LATE = PINGED + 3 * MINUTE
const pinged = (facts: Partial<MonitorRow> = {}): MonitorRow =>
  aMonitor({ accepted_heartbeat_count: 1, last_ping_at: PINGED, state_since: PINGED, ...facts })
const exhausted = pinged({ accepted_heartbeat_count: 3 })

type Row = [note: string, monitor: MonitorRow, now: number, state: string, since: number]

const rows: Row[] = [
  ['made', aMonitor(), T, 'waiting', T],
  ['no ping, however long', aMonitor(), T + 23 * HOUR, 'waiting', T],
  ['no ping, a moment before expiry', aMonitor(), EXPIRES - 1, 'waiting', T],
  ['no ping, at expiry', aMonitor(), EXPIRES, 'expired', EXPIRES],
  ['pinged this very millisecond', pinged(), PINGED, 'operational', PINGED],
  ['due', pinged(), PINGED + MINUTE, 'operational', PINGED],
  ['a moment before the deadline', pinged(), LATE - 1, 'operational', PINGED],
  ['exactly at the deadline', pinged(), LATE, 'late', LATE],
  ['a moment after the deadline', pinged(), LATE + 1, 'late', LATE],
  ['late, a moment before expiry', pinged(), EXPIRES - 1, 'late', LATE],
  ['late, at expiry', pinged(), EXPIRES, 'expired', EXPIRES],
  ['late, long after expiry', pinged(), EXPIRES + 100 * HOUR, 'expired', EXPIRES],
  ['pinged since long', pinged({ state_since: T + 5 }), PINGED, 'operational', T + 5],
  ['late after it was operational for long', pinged({ state_since: T + 5 }), LATE, 'late', LATE],
  ['the last ping', exhausted, PINGED, 'exhausted', PINGED],
  ['exhausted is never late', exhausted, LATE, 'exhausted', PINGED],
  ['exhausted, a moment before expiry', exhausted, EXPIRES - 1, 'exhausted', PINGED],
  ['exhausted, at expiry', exhausted, EXPIRES, 'expired', EXPIRES],
  ['stored as late', pinged({ late_since: LATE - 9 }), LATE, 'late', LATE - 9],
  ['the last run failed', pinged({ failed_at: PINGED }), PINGED, 'late', PINGED],
  [
    'failed, then late as well',
    pinged({ failed_at: PINGED, late_since: LATE }),
    LATE + 1,
    'late',
    PINGED,
  ],
  ['failed and exhausted', { ...exhausted, failed_at: PINGED }, PINGED, 'exhausted', PINGED],
  [
    'exhausted by starts, without a ping',
    aMonitor({ accepted_heartbeat_count: 3 }),
    T + 1,
    'exhausted',
    T,
  ],
  [
    'the deadline is after expiry',
    pinged({ last_ping_at: EXPIRES - 1, state_since: EXPIRES - 1 }),
    EXPIRES,
    'expired',
    EXPIRES,
  ],
]

for (const [note, monitor, now, state, since] of rows) {
  test(`the state is ${state}: ${note}`, () => {
    const standing = standingAt(monitor, now, [])
    assert.deepEqual([standing.state, standing.stateChangedAt], [state, since])
    const isExpecting = state === 'operational' || state === 'late'
    const lastPingAt = monitor.last_ping_at ?? 0
    assert.deepEqual(
      [standing.nextExpectedAt, standing.lateAt],
      isExpecting
        ? [lastPingAt + MINUTE, monitor.late_since ?? lastPingAt + 3 * MINUTE]
        : [null, null],
    )
  })
}

test('every state ends exactly when its next change is foretold', () => {
  for (const [note, monitor, now, state] of rows) {
    const next = nextStateChangeAt(monitor, now, [])
    if (state === 'expired') {
      assert.equal(next, null, note)
      continue
    }
    assert.ok(next !== null && next > now, note)
    assert.equal(standingAt(monitor, next - 1, []).state, state, note)
    const after = standingAt(monitor, next, [])
    assert.notEqual(after.state, state, note)
    assert.equal(after.stateChangedAt, next, note)
  }
})

test('the deadline counts from the last change of interval or grace, or from the ping after it', () => {
  const rescheduled = (rescheduled_at: number) =>
    standingAt(pinged({ rescheduled_at }), PINGED, []).lateAt
  assert.equal(rescheduled(PINGED + 7), LATE + 7)
  assert.equal(rescheduled(PINGED - 7), LATE)
})

test('a blind window moves the deadline of a monitor that is not stored as late, and no other', () => {
  const blind = [{ beganAt: LATE - 1, endedAt: LATE + HOUR }]
  const after = standingAt(pinged(), LATE + HOUR, blind)
  assert.deepEqual([after.state, after.lateAt], ['operational', LATE + HOUR + 3 * MINUTE])
  const late = standingAt(pinged({ late_since: LATE }), LATE + HOUR, blind)
  assert.deepEqual([late.state, late.lateAt], ['late', LATE])
})

/** As the column has them. */
const column = (...windows: [beganAt: number, endedAt: number][]): string =>
  windows
    .toReversed()
    .map(([beganAt, endedAt]) => `${beganAt}-${endedAt} `)
    .join('')

/** Pinged, with ten minutes of interval and two of grace. */
const slow = (facts: Partial<MonitorRow> = {}): MonitorRow =>
  pinged({ expected_interval_seconds: 600, expires_at: PINGED + 1e9, is_expiry_told: 1, ...facts })

const minutes = (from: number, to: number): [number, number] => [
  PINGED + from * MINUTE,
  PINGED + to * MINUTE,
]

test('an outage of the service and a suspension move a deadline together', () => {
  const outage = { beganAt: PINGED + 9 * MINUTE, endedAt: PINGED + 11 * MINUTE }
  const monitor = slow({ suspensions: column(minutes(22, 24)) })
  const { lateAt } = standingAt(monitor, PINGED, [outage])
  assert.equal(((lateAt ?? 0) - PINGED) / MINUTE, 36)
})

test('a suspension between lateness and opening moves the opening, and an earlier one does not', () => {
  const opening = (...suspensions: [number, number][]): number => {
    const late = { late_since: PINGED + 12 * MINUTE, suspensions: column(...suspensions) }
    const monitor = slow(late)
    const bound = { timings: [timingOf(monitor)], waitMs: 60 * MINUTE }
    return ((opensAt(monitor, bound, []) ?? 0) - PINGED) / MINUTE
  }
  assert.equal(opening(), 12 + 60)
  assert.equal(opening(minutes(-60, -50)), 12 + 60)
  assert.equal(opening(minutes(13, 60)), 60 + 10 + 60)
  assert.equal(opening(minutes(13, 60), minutes(80, 90)), 90 + 10 + 60)
})

test('suspensions are read in the order of time', () => {
  assert.deepEqual(suspensionsOf({ suspensions: '' }), [])
  const windows = [minutes(1, 2), minutes(3, 5)]
  assert.deepEqual(
    suspensionsOf({ suspensions: column(...windows) }),
    windows.map(([beganAt, endedAt]) => ({ beganAt, endedAt })),
  )
})

test('a schedule has a grace of its own, in place of that of the interval', () => {
  const schedule = { cron: '0 * * * *', timeZone: 'UTC', graceSeconds: 900 }
  const monitor = pinged({ schedule: JSON.stringify(schedule) })
  const { nextExpectedAt, lateAt } = standingAt(monitor, PINGED, [])
  assert.equal(Number(lateAt) - Number(nextExpectedAt), 15 * MINUTE)
})
