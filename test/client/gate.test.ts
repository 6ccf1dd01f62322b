import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGateKeys, verifyGateReceipt } from '../../src/client/index.ts'
import { register } from '../support/gate.ts'
import { startServer } from '../support/server.ts'
import { testWallet } from '../support/wallet.ts'

test('anybody verifies a receipt with the published keys, and no forged one', async (t) => {
  const server = await startServer(t, { MAYFLY_GATE: 'on' })
  const { projectId, capability } = await register(server)
  const gate = server.mayfly.gate({ projectId, capability })
  const quote = await gate.intent({ route: 'ping', method: 'GET', path: '/ping' })
  const { preimage } = await testWallet(server).pay(quote.bolt11)
  const outcome = await gate.prove(quote.intentId, preimage)
  assert.ok(outcome.settled)
  const { receipt } = outcome

  const jwks = await (await fetch(`${server.url}/.well-known/gate-jwks.json`)).json()
  const keys = readGateKeys(jwks)
  assert.ok(keys)
  const claims = await verifyGateReceipt(receipt, { baseUrl: server.url })
  assert.equal(claims.ph, outcome.paymentHash)
  assert.equal(claims.aud, projectId)
  assert.deepEqual(await verifyGateReceipt(`${receipt}\n`, { keys, projectId }), claims)
  // A record stays one when it lets nobody in any more.
  server.clock.advance(3_600_000)
  assert.deepEqual(await verifyGateReceipt(receipt, { keys }), claims)

  const invalid = { name: 'MayflyError', phrase: 'invalid receipt', status: 0 }
  const [head, body, signature = ''] = receipt.split('.')
  const flipped = signature.startsWith('A') ? `B${signature.slice(1)}` : `A${signature.slice(1)}`
  for (const text of ['', 'receipt', `${head}.${body}.${flipped}`, `${head}.${body}`]) {
    await assert.rejects(verifyGateReceipt(text, { keys }), invalid, text)
  }
  await assert.rejects(verifyGateReceipt(receipt, { keys: [] }), invalid)
  await assert.rejects(verifyGateReceipt(receipt, { keys, projectId: 'gate_project_x' }), invalid)
})
