import assert from 'node:assert/strict'
import { test } from 'node:test'
import { timingOf } from '../../src/pulse/schedule.ts'
import { opensAt, standingAt } from '../../src/pulse/state.ts'
import type { MonitorRow } from '../../src/pulse/store.ts'
import { suspensionsOf } from '../../src/pulse/takedown.ts'

const MINUTE = 60_000
const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

/** As the column has them. */
const column = (...windows: [beganAt: number, endedAt: number][]): string =>
  windows
    .toReversed()
    .map(([beganAt, endedAt]) => `${beganAt}-${endedAt} `)
    .join('')

/** Pinged at T, ten minutes of interval and two of grace. */
const aMonitor = (facts: Partial<MonitorRow> = {}): MonitorRow =>
  ({
    heartbeat_limit: 100,
    accepted_heartbeat_count: 1,
    last_ping_at: T,
    expected_interval_seconds: 600,
    grace_seconds: 120,
    schedule_cron: '',
    schedule_time_zone: '',
    schedule_grace_seconds: 0,
    rescheduled_at: 0,
    late_since: null,
    failed_at: null,
    state_since: T,
    created_at: T - MINUTE,
    expires_at: T + 1e9,
    is_silent: 0,
    is_expiry_told: 1,
    suspensions: '',
    ...facts,
  }) as MonitorRow

const minutes = (from: number, to: number): [number, number] => [T + from * MINUTE, T + to * MINUTE]

const rows: [note: string, suspensions: [number, number][], lateAt: number][] = [
  ['none', [], 12],
  ['over before a ping could be missed', [minutes(1, 7)], 12],
  ['across the time of the ping', [minutes(9, 11)], 23],
  ['from the last moment of the grace', [minutes(12, 13)], 25],
  ['after the deadline', [minutes(13, 14)], 12],
  [
    'a second one that meets the deadline which the first has moved',
    [minutes(9, 11), minutes(20, 21)],
    33,
  ],
]
for (const [note, suspensions, late] of rows) {
  test(`the deadline of a monitor that was suspended: ${note}`, () => {
    const { lateAt } = standingAt(aMonitor({ suspensions: column(...suspensions) }), T + MINUTE, [])
    assert.equal(((lateAt ?? 0) - T) / MINUTE, late)
  })
}

test('an outage of the service and a suspension move a deadline together', () => {
  const outage = { beganAt: T + 9 * MINUTE, endedAt: T + 11 * MINUTE }
  const monitor = aMonitor({ suspensions: column(minutes(22, 24)) })
  const { lateAt } = standingAt(monitor, T, [outage])
  assert.equal(((lateAt ?? 0) - T) / MINUTE, 36)
})

test('a suspension between lateness and opening moves the opening, and an earlier one does not', () => {
  const opening = (...suspensions: [number, number][]): number => {
    const late = { late_since: T + 12 * MINUTE, suspensions: column(...suspensions) }
    const monitor = aMonitor(late)
    const bound = { timings: [timingOf(monitor)], waitMs: 60 * MINUTE }
    return ((opensAt(monitor, bound, []) ?? 0) - T) / MINUTE
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
