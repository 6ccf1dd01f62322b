import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { putBack, startWorkerAhead, takeWorker } from '../../../src/db/sqlite/thread.ts'
import { temporaryFolder } from '../../support/folder.ts'

const run = promisify(execFile)
const SQLITE = new URL('../../../src/db/sqlite/sqlite.ts', import.meta.url).href

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

test('a thread of the store uses the compile cache of its process, and adds to it', async (t) => {
  const cache = await temporaryFolder(t)
  const script = `const { enableCompileCache } = await import('node:module')
    enableCompileCache(${JSON.stringify(cache)})
    const { openSqlite } = await import(${JSON.stringify(SQLITE)})
    const db = await openSqlite(${JSON.stringify(join(cache, 'mayfly.db'))})
    await db.close()
    process.exit()`
  const open = () =>
    run(process.execPath, ['--input-type=module', '-e', script], {
      env: { NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
    })
  const first = await open()
  assert.match(first.stderr, /no transpile cache for StrippedTypeScript \S*\/worker\.ts/)
  const second = await open()
  assert.match(second.stderr, /\/sqlite\/worker\.ts was accepted/)
  // The parser of TypeScript is not loaded for any file.
  assert.doesNotMatch(second.stderr, /no transpile cache/)
})

test('the thread that was started ahead is the next that is taken', async () => {
  await emptyPool()
  startWorkerAhead()
  // Threads are numbered in the order of their start.
  const later = new Worker('', { eval: true })
  const taken = takeWorker()
  const [first, second] = [taken, later].map(({ threadId }) => threadId)
  await Promise.all([taken, later].map((worker) => worker.terminate()))
  assert.ok(Number(first) < Number(second))
})
