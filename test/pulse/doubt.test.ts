import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judge, type MissedPing, type Seen } from '../../src/pulse/doubt.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const T = Date.UTC(2026, 0, 2, 3, 4, 5)

const missing = (count: number, dueAgoMs = MINUTE, graceMs = MINUTE): MissedPing[] =>
  Array.from({ length: count }, () => ({
    dueAt: T - dueAgoMs,
    expectedAt: T - dueAgoMs - graceMs / 2,
  }))

const judged = (seen: Partial<Seen>) =>
  judge({ now: T, arrivedCount: 0, arrivedAt: 0, missed: [], windows: [], ...seen })

const window = (beganAgoMs: number, endedAgoMs: number, isOfArrivals = true) => ({
  ...{ beganAt: T - beganAgoMs, endedAt: T - endedAgoMs },
  isOfArrivals,
})

test('fewer than a tenth of twenty pings that were due in two minutes are a window of these two minutes', () => {
  const two = { beganAt: T - 2 * MINUTE, endedAt: T }
  assert.deepEqual(judged({ arrivedCount: 1, missed: missing(19) }).window, two)
  assert.equal(judged({ arrivedCount: 1, missed: missing(18) }).window, null, 'nineteen were due')
  assert.equal(judged({ arrivedCount: 2, missed: missing(18) }).window, null, 'a tenth')
  assert.deepEqual(judged({ arrivedCount: 10, missed: missing(91) }).window, two)
  assert.equal(judged({ arrivedCount: 10, missed: missing(90) }).window, null, 'a tenth of them')
})

test('a missing ping counts for two minutes from half of its grace on, and never again', () => {
  const isDoubtful = (dueAgoMs: number) => judged({ missed: missing(50, dueAgoMs) }).isDoubtful
  assert.deepEqual([0, 2 * MINUTE - 1, 2 * MINUTE, HOUR, -1].map(isDoubtful), [
    ...[true, true, false],
    ...[false, false],
  ])
})

test('what was due in a window of another cause raises no doubt', () => {
  const windows = [window(10 * MINUTE, 30 * SECOND, false)]
  assert.equal(judged({ missed: missing(50), windows }).isDoubtful, false)
  assert.equal(judged({ missed: missing(50, 20 * SECOND), windows }).isDoubtful, true)
})

test('while nothing arrives the window goes on for a quarter of an hour, and the doubt for a day', () => {
  const seen = (beganAgoMs: number) => {
    const { window: one, isDoubtful } = judged({
      ...{ windows: [window(beganAgoMs, 5 * SECOND)], arrivedAt: T - 2 * 24 * HOUR },
    })
    return [one && T - one.beganAt, isDoubtful]
  }
  assert.deepEqual(seen(15 * MINUTE), [15 * MINUTE, true])
  assert.deepEqual(seen(15 * MINUTE + 1), [null, true])
  assert.deepEqual(seen(24 * HOUR - 1), [null, true])
  assert.deepEqual(seen(24 * HOUR), [null, false])
})

test('one ping ends a doubt whose missing pings are two minutes old', () => {
  const windows = [window(5 * MINUTE, 5 * SECOND)]
  assert.equal(judged({ windows, arrivedAt: T - 16 * SECOND }).isDoubtful, true)
  const { isDoubtful, window: one } = judged({ windows, arrivedAt: T - SECOND, arrivedCount: 1 })
  assert.deepEqual([isDoubtful, one], [false, null])
})

test('deadlines wait while none of twenty pings has come since the last one that did, for two minutes at most', () => {
  const held = (arrivedAgoMs: number, missed = missing(20, 10 * SECOND)) =>
    judged({ arrivedCount: 100, arrivedAt: T - arrivedAgoMs, missed })
  assert.deepEqual([held(MINUTE).isHeld, held(MINUTE).isDoubtful], [true, true])
  assert.equal(held(MINUTE).window, null)
  assert.equal(held(MINUTE, missing(19, 10 * SECOND)).isHeld, false, 'nineteen')
  assert.equal(held(20 * SECOND).isHeld, false, 'one came after them')
  assert.equal(held(2 * MINUTE).isHeld, false, 'the two minutes are over')
})
