import assert from 'node:assert/strict'
import { test } from 'node:test'
import { register } from '../support/gate.ts'
import { startServer } from '../support/server.ts'
import { replay } from '../support/transcripts.ts'

test('the transcripts of docs/gate.md are what a server says', async (t) => {
  const { url, databaseUrl } = await startServer(t, { MAYFLY_GATE: 'on' })
  const { projectId, capability } = await register({ databaseUrl }, { credits: 100 })
  assert.equal(await replay(url, 'gate.md', { projectId, capability }), 3)
})
