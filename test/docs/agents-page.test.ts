import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../support/server.ts'
import { replay } from '../support/transcripts.ts'

test('the requests of docs/agents.md buy, receive and read with one address', async (t) => {
  const { url } = await startServer(t)
  assert.equal(await replay(url, 'agents.md'), 3)
})
