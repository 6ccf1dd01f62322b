import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRuns } from '../../src/gate-middleware/runs.ts'

const timers = (): number =>
  process.getActiveResourcesInfo().filter((what) => what === 'Timeout').length

test('requests that waited for the first run leave no timer behind, and make room for others', async () => {
  const runs = createRuns()
  const run = runs.begin('a key', async () => 'recorded')
  const before = timers()
  const wait = () => Promise.all(Array.from({ length: 9 }, () => run.ended(60_000)))
  const waits = wait()
  run.spent()
  assert.deepEqual((await waits).sort(), [false, ...Array(8).fill(true)])
  assert.deepEqual(await wait(), Array(9).fill(true))
  assert.equal(timers(), before)
})

test('visitors that waited in vain leave their places to those of other runs', async () => {
  const runs = createRuns()
  for (let i = 0; i < 300; i++) {
    assert.equal(await runs.begin(`in vain ${i}`, async () => 'recorded').ended(0), false)
  }
  const run = runs.begin('told', async () => 'recorded')
  const waiting = run.ended(60_000)
  run.spent()
  assert.equal(await waiting, true)
})
