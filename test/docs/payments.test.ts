import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../support/server.ts'
import { replay } from '../support/transcripts.ts'

test('the transcripts of docs/payments.md are what a server says', async (t) => {
  const { url } = await startServer(t)
  assert.equal(await replay(url, 'payments.md'), 9)
})
