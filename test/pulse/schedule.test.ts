import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isTimetable, nextRun, shortestGapMs } from '../../src/pulse/schedule.ts'
import vectors from '../vectors/schedules.json' with { type: 'json' }

const MINUTE = 60_000
const NOW = Date.UTC(2026, 10, 22)

for (const { note, cron, timeZone, after, next } of vectors.runs) {
  test(`${cron} in ${timeZone} runs when cron does. ${note}`, () => {
    assert.equal(isTimetable({ cron, timeZone }, NOW), true)
    let time = Date.parse(after)
    for (const expected of next) {
      time = nextRun({ cron, timeZone }, time) ?? 0
      assert.equal(new Date(time).toISOString(), new Date(expected).toISOString())
    }
  })
}

for (const { cron, timeZone, note } of vectors.refused) {
  test(`a schedule is refused: ${note}`, () => {
    assert.equal(isTimetable({ cron, timeZone }, NOW), false)
  })
}

test('whatever a stranger sends as a schedule is judged without an exception, and what is accepted runs again and again', () => {
  const field = fc.oneof(
    fc.constant('*'),
    fc.nat(70).map(String),
    fc.tuple(fc.nat(60), fc.nat(60)).map(([from, to]) => `${from}-${to}`),
    fc.nat(99).map((step) => `*/${step}`),
    fc.string({ maxLength: 8 }),
  )
  const cron = fc.oneof(
    fc.tuple(field, field, field, field, field).map((fields) => fields.join(' ')),
    fc.string({ maxLength: 120 }),
  )
  const timeZone = fc.oneof(
    fc.constantFrom('UTC', 'Europe/Berlin', 'Australia/Lord_Howe', 'America/St_Johns'),
    fc.string({ maxLength: 70 }),
  )
  fc.assert(
    fc.property(cron, timeZone, fc.integer({ min: 0, max: 20 * 365 }), (given, zone, days) => {
      const timetable = { cron: given, timeZone: zone }
      const from = NOW + days * 24 * 60 * MINUTE
      if (!isTimetable(timetable, from)) return
      const first = nextRun(timetable, from)
      assert.ok(first !== null && first > from)
      const second = nextRun(timetable, first)
      assert.ok(second === null || second - first >= MINUTE, `${first} ${second}`)
    }),
    { numRuns: 2_000 },
  )
})

test('the shortest gap between two runs is that of the densest part of the day', () => {
  const gap = (cron: string) => shortestGapMs({ cron, timeZone: 'UTC' }, NOW)
  assert.equal(gap('* * * * *'), MINUTE)
  assert.equal(gap('0,5 3 * * *'), 5 * MINUTE)
  assert.equal(gap('0 3 * * *'), 24 * 60 * MINUTE)
})
