import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { putBack, takeWorker } from '../../../src/db/sqlite/worker-pool.ts'

/** A thread that the pool does not have, however many are idle now. */
const ENDINGS: Record<string, (worker: Worker) => unknown> = {
  'is ended': (worker) => worker.terminate(),
  'fails of itself': (worker) => worker.postMessage({ kind: 'queries' }),
}

/** Empties the pool, so that the thread put back next is the one taken next. */
async function emptyPool(): Promise<void> {
  for (let i = 0; i < 5; i++) await takeWorker().terminate()
}

test('a thread that was put back is taken again', async () => {
  await emptyPool()
  const worker = takeWorker()
  await putBack(worker)
  const again = takeWorker()
  assert.equal(again, worker)
  await again.terminate()
})

for (const [what, end] of Object.entries(ENDINGS)) {
  test(`a thread that ${what} while idle leaves the pool and the process running`, async () => {
    await emptyPool()
    const worker = takeWorker()
    await putBack(worker)
    // Not `once` of node:events, which rejects with the 'error' that comes right before.
    const ended = new Promise((resolve) => worker.once('exit', resolve))
    worker.ref()
    end(worker)
    await ended
    const next = takeWorker()
    assert.notEqual(next, worker)
    await next.terminate()
  })
}
