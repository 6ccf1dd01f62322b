import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneDay } from './day.ts'

test('what begins in the last minutes of a day waits for the next one, and nothing else does', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.UTC(2028, 1, 29, 23, 57, 59) })
  await oneDay()
  t.mock.timers.tick(2_000)
  const begun: number[] = []
  const waiting = oneDay().then(() => begun.push(Date.now()))
  t.mock.timers.tick(118_999)
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(begun, [])
  t.mock.timers.tick(1)
  await waiting
  assert.deepEqual(begun, [Date.UTC(2028, 2, 1)])
})
