import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { createFeeder, createRingMemory } from '../../../src/db/sqlite/ring.ts'
import { openSqlite } from '../../../src/db/sqlite/sqlite.ts'
import type { Reply, Request } from '../../../src/db/sqlite/worker-messages.ts'
import { takeWorker } from '../../../src/db/sqlite/worker-pool.ts'
import { temporaryFolder } from '../../support/folder.ts'

test('the writing thread commits what is in the ring before it closes the file, and answers first', async (t) => {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const ring = createRingMemory()
  const worker = takeWorker()
  const replies: Reply[] = []
  const closed = new Promise<void>((resolve, reject) => {
    worker.on('error', reject)
    worker.on('message', (reply: Reply) => {
      replies.push(reply)
      if (reply.kind === 'closed') resolve()
    })
  })
  const ask = (request: Request): void => worker.postMessage(request)
  ask({ kind: 'open', options: { file, role: 'writer', truncateEveryMs: 60_000 }, ring })
  const feeder = createFeeder(ring)
  // The thread is not woken for it, as if it were about to look by itself.
  feeder.put([[{ text: 'create table line (n integer)', values: [] }]], true)
  ask({ kind: 'close' })
  await closed
  await worker.terminate()
  assert.deepEqual(replies, [{ kind: 'opened' }, { kind: 'units', results: 1 }, { kind: 'closed' }])
  const db = await openSqlite(file)
  t.after(() => db.close())
  assert.deepEqual(await db.read('select count(*) as lines from line'), [{ lines: 0 }])
})
