/** GATE in the whole service: its wiring, its SDK and its limits. test/gate/ has what its routes answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GateAuthorization, GateQuote } from '../../src/client/index.ts'
import { BODY, PATH } from '../support/gate-request.ts'
import { aShop, bytes } from '../support/gate-server.ts'
import { startServer } from '../support/server.ts'

const LIMITED = { MAYFLY_RATE_LIMITS: 'on' }

test('a project sells one request, through the SDK', async (t) => {
  const { mayfly, pay, gate } = await aShop(t)
  const request = { route: 'render', method: 'POST', path: PATH, body: bytes(BODY) }
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
})

test('a start under another secret is refused while intents may still be paid', async (t) => {
  const environment = { MAYFLY_SECRET: '11'.repeat(32) }
  const shop = await aShop(t, { environment })
  await shop.create({})
  environment.MAYFLY_SECRET = '22'.repeat(32)
  await assert.rejects(shop.restart(), /MAYFLY_SECRET is not the one/)
  shop.clock.advance(24 * 3600 * 1000)
  await shop.restart()
})

test('unpaid visits use up the creating of intents, and never stand in the way of a proof, a poll or a give-back', async (t) => {
  const { create, prove, poll, giveBack, pay } = await aShop(t, { environment: LIMITED })
  const quote = (await create({})).body as GateQuote
  const visits = await Promise.all(Array.from({ length: 168 }, () => create({})))
  const refused = visits.filter(({ status }) => status === 429)
  assert.ok(refused.length >= 168 - 120)
  assert.match(refused[0]?.headers.get('retry-after') ?? '', /^\d+$/)
  assert.equal((await poll(quote.intentId)).status, 402)
  const proven = await prove(quote, { preimage: await pay(quote.bolt11) })
  assert.equal(proven.status, 200)
  const { receiptId } = proven.body as GateAuthorization
  assert.equal((await giveBack(quote.intentId, receiptId)).status, 204)
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
