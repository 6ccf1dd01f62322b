import assert from 'node:assert/strict'
import { test } from 'node:test'
import { register } from '../support/gate.ts'
import { startServer } from '../support/server.ts'
import { replay } from './transcripts.ts'

/** The pages that show requests and their answers, and how many such walks each has. */
const WALKS = { 'agents.md': 3, 'payments.md': 9, 'gate.md': 3 }

for (const [page, walks] of Object.entries(WALKS)) {
  test(`the requests of docs/${page} get the answers that it shows`, async (t) => {
    const server = await startServer(t, { MAYFLY_GATE: 'on' })
    const { projectId, capability } = await register(server, { credits: 100 })
    assert.equal(await replay(server.url, page, { projectId, capability }), walks)
  })
}
