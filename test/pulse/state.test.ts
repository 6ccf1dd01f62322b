import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ALWAYS_SEEING } from '../../src/pulse/fairness.ts'
import { nextStateChangeAt, type StateFacts, standingAt } from '../../src/pulse/state.ts'

const T = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const EXPIRES = T + 24 * HOUR

/** Made at T, for a day, with room for three pings, a minute of interval and two of grace. */
const aMonitor = (facts: Partial<StateFacts> = {}): StateFacts => ({
  heartbeat_limit: 3,
  accepted_heartbeat_count: 0,
  last_ping_at: null,
  expected_interval_seconds: 60,
  grace_seconds: 120,
  settings_changed_at: T,
  state_since: T,
  expires_at: EXPIRES,
  ...facts,
})

const PINGED = T + HOUR
const LATE = PINGED + 3 * MINUTE
const pinged = (facts: Partial<StateFacts> = {}): StateFacts =>
  aMonitor({ accepted_heartbeat_count: 1, last_ping_at: PINGED, state_since: PINGED, ...facts })
const exhausted = pinged({ accepted_heartbeat_count: 3, state_since: T + 1 })

type Row = [note: string, monitor: StateFacts, now: number, state: string, since: number]

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
  [
    'made late by settings',
    pinged({ settings_changed_at: LATE + 7, state_since: LATE + 7 }),
    LATE + 7,
    'late',
    LATE + 7,
  ],
  [
    'left late by settings',
    pinged({ settings_changed_at: LATE + 7, state_since: LATE - 9 }),
    LATE + 8,
    'late',
    LATE - 9,
  ],
  [
    'settings changed before the deadline',
    pinged({ settings_changed_at: LATE - 1, state_since: PINGED }),
    LATE,
    'late',
    LATE,
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
    const standing = standingAt(monitor, now, ALWAYS_SEEING)
    assert.deepEqual([standing.state, standing.stateChangedAt], [state, since])
    const isExpecting = state === 'operational' || state === 'late'
    const lastPingAt = monitor.last_ping_at ?? 0
    assert.deepEqual(
      [standing.nextExpectedAt, standing.lateAt],
      isExpecting ? [lastPingAt + MINUTE, lastPingAt + 3 * MINUTE] : [null, null],
    )
  })
}

test('every state ends exactly when its next change is foretold', () => {
  for (const [note, monitor, now, state] of rows) {
    const next = nextStateChangeAt(monitor, now, ALWAYS_SEEING)
    if (state === 'expired') {
      assert.equal(next, null, note)
      continue
    }
    assert.ok(next !== null && next > now, note)
    assert.equal(standingAt(monitor, next - 1, ALWAYS_SEEING).state, state, note)
    const after = standingAt(monitor, next, ALWAYS_SEEING)
    assert.notEqual(after.state, state, note)
    assert.equal(after.stateChangedAt, next, note)
  }
})

test('while the clock is in doubt no deadline passes, and nobody waits for one', () => {
  const held = { windows: [], isHeld: true }
  assert.equal(standingAt(pinged(), LATE + HOUR, held).state, 'operational')
  assert.equal(nextStateChangeAt(pinged(), LATE + HOUR, held), EXPIRES)
  assert.equal(standingAt(pinged(), EXPIRES, held).state, 'expired')
})
