import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBatcher } from '../../../src/db/sqlite/batcher.ts'

test('what a thread has taken keeps its outcome when the thread takes no more', async () => {
  let isClosed = false
  const batcher = createBatcher<string, string>(1, () => (isClosed ? new Error('closed') : 1))
  const taken = batcher.add('taken')
  isClosed = true
  await assert.rejects(batcher.add('late'), /closed/)
  batcher.settle(1, (_, input) => `${input} and done`)
  assert.equal(await taken, 'taken and done')
  await batcher.idle()
})
