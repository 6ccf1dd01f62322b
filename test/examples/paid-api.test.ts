import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { startPaidApi } from '../../examples/paid-api.ts'
import type { GateQuote } from '../../src/client/index.ts'
import { register } from '../support/gate.ts'
import { startServer } from '../support/server.ts'

test('the example API sells a picture', async (t) => {
  const { url, databaseUrl, pay } = await startServer(t, { MAYFLY_GATE: 'on' })
  const { projectId, capability } = await register({ databaseUrl })
  const api = await startPaidApi({ url, projectId, capability })
  t.after(() => api.server.close())
  const render = (headers: Record<string, string> = {}) =>
    fetch(`${api.url}/render/cat`, { method: 'POST', headers })
  const refused = await render()
  assert.equal(refused.status, 402)
  const { intentId, bolt11 } = (await refused.json()) as GateQuote
  const preimage = await pay(bolt11)
  const answer = await render({ 'x-gate-intent': intentId, 'x-gate-preimage': preimage })
  assert.deepEqual(await answer.json(), { rendered: '/render/cat', sats: 50 })
})

test('the example API fits on a page', async () => {
  const text = await readFile(new URL('../../examples/paid-api.ts', import.meta.url), 'utf8')
  assert.ok(text.trimEnd().split('\n').length < 60)
})
