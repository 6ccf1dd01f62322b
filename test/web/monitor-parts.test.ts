import assert from 'node:assert/strict'
import { test } from 'node:test'
import { duration } from '../../src/web/format.ts'
import { historyOf } from '../../src/web/pulse/history.ts'
import { cronFields } from '../../src/web/pulse/schedule.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const START = Date.parse('2026-11-22T12:00:00Z')

test('a duration is told in its two largest units, and in whole seconds', () => {
  for (const [milliseconds, words] of [
    [-5, '0 s'],
    [999, '0 s'],
    [SECOND, '1 s'],
    [79 * SECOND, '1 min 19 s'],
    [2 * MINUTE, '2 min'],
    [HOUR - 1, '59 min 59 s'],
    [HOUR + 5 * SECOND, '1 h'],
    [3 * HOUR + 5 * MINUTE + 59 * SECOND, '3 h 5 min'],
    [24 * HOUR, '1 day'],
    [52 * HOUR + 59 * MINUTE, '2 days 4 h'],
    [48 * HOUR + MINUTE, '2 days'],
  ] as const) {
    assert.equal(duration(milliseconds), words)
  }
})

test('only what divides an hour, a day or the week has a line in crontab', () => {
  for (const [seconds, fields] of [
    [60, '* * * * *'],
    [300, '*/5 * * * *'],
    [900, '*/15 * * * *'],
    [1800, '*/30 * * * *'],
    [3600, '0 * * * *'],
    [2 * 3600, '0 */2 * * *'],
    [12 * 3600, '0 */12 * * *'],
    [86_400, '0 0 * * *'],
    [604_800, '0 0 * * 0'],
    ...[20, 30, 59, 61, 90, 7 * 60, 45 * 60, 90 * 60, 5 * 3600, 36 * 3600, 2 * 86_400].map(
      (seconds) => [seconds, null] as const,
    ),
  ] as const) {
    assert.equal(cronFields(seconds), fields, `${seconds} s`)
  }
})

/** The history of a monitor with an interval and a grace of a minute each, whose pings came at these minutes. */
function historyAt(
  minutes: number[],
  {
    now,
    ends = 1000,
    remaining = 5,
    blind = [],
  }: { now: number; ends?: number; remaining?: number; blind?: [number, number][] },
) {
  const at = (minute: number): string => new Date(START + minute * MINUTE).toISOString()
  const history = historyOf(
    {
      recentHeartbeats: minutes.map(at).reverse(),
      expectedIntervalSeconds: 60,
      graceSeconds: 60,
      expiresAt: at(ends),
      remainingHeartbeats: remaining,
      schedule: null,
      state: 'operational',
      stateChangedAt: at(0),
      blindWindows: blind.map(([from, to]) => ({ beganAt: at(from), endedAt: at(to) })),
    },
    START + now * MINUTE,
  )
  const minuteOf = (time: number): number => (time - START) / MINUTE
  return (
    history && {
      until: minuteOf(history.until),
      spells: history.spells.map(({ from, to }) => [minuteOf(from), to && minuteOf(to)]),
      onTime: Math.round((history.onTime ?? 0) * 1000) / 1000,
    }
  )
}

test('a history has none of its lateness before the first ping', () => {
  assert.equal(historyAt([], { now: 100 }), null)
  assert.deepEqual(historyAt([0], { now: 0 }), { until: 0, spells: [], onTime: 1 })
})

test('a lateness begins with its deadline and ends with the next ping, or lasts', () => {
  assert.deepEqual(historyAt([0, 1.9, 3.8], { now: 5 })?.spells, [])
  assert.deepEqual(
    historyAt([0, 2, 3], { now: 4 })?.spells,
    [[2, 2]],
    'at the deadline it was late',
  )
  assert.deepEqual(historyAt([0, 6, 7], { now: 10 }), {
    until: 10,
    spells: [
      [2, 6],
      [9, null],
    ],
    onTime: 0.5,
  })
})

test('a monitor that expects nothing any more is not late', () => {
  assert.deepEqual(historyAt([0, 1], { now: 50, remaining: 0 }), {
    until: 1,
    spells: [],
    onTime: 1,
  })
  assert.deepEqual(historyAt([0, 1], { now: 50, ends: 5 }), {
    until: 5,
    spells: [[3, 5]],
    onTime: 0.6,
  })
})

test('a time in which nobody could ping makes nothing late, and moves the deadline', () => {
  assert.deepEqual(historyAt([0, 6], { now: 6, blind: [[1, 5]] })?.spells, [])
  assert.deepEqual(historyAt([0, 8], { now: 8, blind: [[1, 5]] })?.spells, [[7, 8]])
  assert.deepEqual(
    historyAt([0, 8.5], {
      now: 9,
      blind: [
        [6, 7],
        [1, 5],
      ],
    })?.spells,
    [],
    'one after another',
  )
  assert.deepEqual(
    historyAt([0, 9], { now: 9, blind: [[3, 7]] })?.spells,
    [[2, 9]],
    'too late to matter',
  )
})
