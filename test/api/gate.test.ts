/** GATE in the whole service: its wiring and its SDK. test/gate/ has what its routes answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { utf8 } from '../../src/lib/bytes.ts'
import { register } from '../support/gate.ts'
import { aShop, BODY, PATH } from '../support/gate-app.ts'
import { scrape } from '../support/scrape.ts'
import { startServer } from '../support/server.ts'

const REQUEST = { route: 'render', method: 'POST', path: PATH, body: utf8(BODY) }

test('a project sells one request, through the SDK, and the operator sees it counted', async (t) => {
  const server = await startServer(t, { MAYFLY_GATE: 'on', MAYFLY_METRICS_PORT: '0' })
  const { mayfly, pay } = server
  const gate = mayfly.gate(await register(server))
  const request = REQUEST
  const quote = await gate.intent(request, 'one-key-of-mine')
  assert.deepEqual(await gate.intent(request, 'one-key-of-mine'), quote)
  const waiting = await gate.poll(quote.intentId)
  assert.deepEqual(waiting, {
    settled: false,
    intentId: quote.intentId,
    status: 'pending',
    verification: 'provider',
    expiresAt: quote.expiresAt,
    error: 'payment not verified',
  })
  const preimage = await pay(quote.bolt11)
  const outcome = await gate.prove(quote.intentId, preimage)
  assert.ok(outcome.settled)
  assert.equal(outcome.creditsRemaining, 9)
  assert.deepEqual(await gate.poll(quote.intentId), outcome)
  const receipt = await gate.verifyReceipt(outcome.receipt, request)
  assert.equal(receipt.jti, outcome.receiptId)
  await assert.rejects(
    gate.verifyReceipt(outcome.receipt, { ...request, path: '/render/dog?size=2' }),
    { phrase: 'invalid receipt' },
  )
  await assert.rejects(gate.verifyReceipt(`${outcome.receipt}x`), { phrase: 'invalid receipt' })
  await gate.giveBack(quote.intentId, outcome.receiptId)
  const again = await gate.prove(quote.intentId, preimage)
  assert.ok(again.settled && again.receiptId !== outcome.receiptId)
  await assert.rejects(gate.giveBack(quote.intentId, 'none'), { phrase: 'give-back refused' })
  const stranger = mayfly.gate({ projectId: 'gate_project_other', capability: 'x' })
  await assert.rejects(stranger.verifyReceipt(outcome.receipt), { phrase: 'invalid receipt' })
  const { series } = await scrape(server)
  const counted = ['quoted', 'authorized', 'give_backs'].map((what) => `mayfly_gate_${what}_total`)
  assert.deepEqual(
    counted.map((name) => series.get(name)),
    [1, 1, 1],
  )
})

test('an API that reaches GATE by another address than the public one reads its receipts', async (t) => {
  const environment = { MAYFLY_GATE: 'on', MAYFLY_BASE_URL: 'https://mayfly.example' }
  const server = await startServer(t, environment)
  const gate = server.mayfly.gate(await register(server))
  const { intentId, bolt11 } = await gate.intent(REQUEST)
  const outcome = await gate.prove(intentId, await server.pay(bolt11))
  assert.ok(outcome.settled)
  const { iss } = await gate.verifyReceipt(outcome.receipt, REQUEST)
  assert.equal(iss, 'https://mayfly.example')
})

test('a start under another secret is refused while intents may still be paid', async (t) => {
  const { quoted, restart, clock } = await aShop(t)
  await quoted()
  const another = { MAYFLY_SECRET: '22'.repeat(32) }
  await assert.rejects(restart(another), /MAYFLY_SECRET is not the one/)
  clock.advance(24 * 3600 * 1000)
  await restart(another)
})

test('GATE answers 404 everywhere, and is not in the description, unless it is switched on', async (t) => {
  const { url } = await startServer(t)
  for (const [method, path] of [
    ['POST', '/api/gate/intents'],
    ['GET', `/api/gate/intents/gate_intent_${'0'.repeat(22)}`],
    ['POST', `/api/gate/intents/gate_intent_${'0'.repeat(22)}/prove`],
    ['GET', '/.well-known/gate-jwks.json'],
  ] as const) {
    const response = await fetch(url + path, { method })
    assert.equal(response.status, 404, path)
    assert.deepEqual(await response.json(), { error: 'not found' })
  }
  const document = await (await fetch(`${url}/openapi.json`)).text()
  assert.equal(/gate/i.test(document), false)
})
