import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../support/server.ts'
import { replay } from '../support/transcripts.ts'

test('the requests of docs/mcp.md buy an inbox as a tool, wait and read', async (t) => {
  const { url } = await startServer(t)
  assert.equal(await replay(url, 'mcp.md'), 5)
})
