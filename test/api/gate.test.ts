/** GATE in the whole service: its wiring, its SDK and its limits. test/gate/ has what its routes answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { MayflyError } from '../../src/client/errors.ts'
import type { GateAuthorization, GateQuote } from '../../src/client/index.ts'
import { BODY, PATH } from '../support/gate-request.ts'
import { aShop, bytes } from '../support/gate-server.ts'
import { openapi } from '../support/openapi.ts'
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
  const outcome = await gate.prove(quote.intentId, await pay(quote.bolt11))
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
  const stranger = mayfly.gate({ projectId: 'gate_project_other', capability: 'x' })
  await assert.rejects(stranger.verifyReceipt(outcome.receipt), { phrase: 'invalid receipt' })
})

test('a payment is authorized without a preimage when the provider confirms it', async (t) => {
  const { clock, pay, gate } = await aShop(t)
  const quote = await gate.intent({ route: 'ping', method: 'GET', path: '/ping' })
  await pay(quote.bolt11)
  clock.advance(2_000)
  const outcome = await gate.poll(quote.intentId)
  assert.equal(outcome.settled && outcome.verifiedBy, 'provider')
})

test('the SDK gives a receipt back with one call', async (t) => {
  const shop = await aShop(t)
  const quote = (await shop.create({})).body as GateQuote
  const preimage = await shop.pay(quote.bolt11)
  const { receiptId } = (await shop.prove(quote, { preimage })).body as GateAuthorization
  await shop.gate.giveBack(quote.intentId, receiptId)
  const again = await shop.gate.prove(quote.intentId, preimage)
  assert.ok(again.settled && again.receiptId !== receiptId)
  await assert.rejects(
    shop.gate.giveBack(quote.intentId, 'none'),
    (error) => error instanceof MayflyError && error.phrase === 'give-back refused',
  )
})

test('a proof comes back with the same receipt after a restart', async (t) => {
  const shop = await aShop(t)
  const quote = (await shop.create({})).body as GateQuote
  const preimage = await shop.pay(quote.bolt11)
  const { body } = await shop.prove(quote, { preimage })
  await shop.restart()
  assert.deepEqual((await shop.prove(quote, { preimage })).body, body)
  assert.deepEqual((await shop.poll(quote.intentId)).body, body)
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

test('unpaid visits of one network leave room for the visitors of another', async (t) => {
  const { create } = await aShop(t, { environment: LIMITED })
  const flood = { 'x-gate-visitor': '203.0.113.0/24' }
  const visits = await Promise.all(Array.from({ length: 168 }, () => create(flood)))
  assert.equal(visits.filter(({ status }) => status === 402).length, 60)
  assert.equal((await create({ 'x-gate-visitor': '198.51.100.0/24' })).status, 402)
  assert.equal((await create({ 'x-gate-visitor': '2001:db8:1::/48' })).status, 402)
  assert.equal((await create({})).status, 402)
})

test('the key set is public, may be cached, and verifies what was signed', async (t) => {
  const { url, create, prove, pay, projectId, clock } = await aShop(t)
  const quote = (await create({})).body as GateQuote
  const { body } = await prove(quote, { preimage: await pay(quote.bolt11) })
  const { receipt } = body as GateAuthorization
  const response = await fetch(`${url}/.well-known/gate-jwks.json`)
  assert.equal(response.headers.get('cache-control'), 'public, max-age=300')
  assert.equal(response.headers.get('access-control-allow-origin'), '*')
  const jwks = (await response.json()) as Parameters<typeof createLocalJWKSet>[0]
  const { payload } = await jwtVerify(receipt, createLocalJWKSet(jwks), {
    issuer: url,
    audience: projectId,
    typ: 'gate-receipt+jwt',
    currentDate: new Date(clock.now()),
  })
  assert.equal(payload.req, quote.requestDigest)
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

test('GATE has a description of its own, which the main one links when it is switched on', async (t) => {
  const { url } = await aShop(t)
  const main = await openapi({ url })
  assert.ok(!Object.keys(main.paths).some((path) => path.includes('gate')))
  const links = main.tags?.map(({ externalDocs }) => externalDocs?.url) ?? []
  assert.ok(links.includes(`${url}/openapi-gate.json`))
  const document = await openapi({ url }, '/openapi-gate.json')
  const responses = (path: string, method: string) =>
    Object.keys(document.paths[path]?.[method]?.responses ?? {})
  assert.deepEqual(responses('/api/gate/intents', 'post'), [
    ...['400', '401', '402', '403', '408', '429', '500', '503'],
  ])
  assert.deepEqual(responses('/api/gate/intents/{intentId}', 'get'), [
    ...['200', '401', '402', '429', '500', '503'],
  ])
  assert.deepEqual(responses('/api/gate/intents/{intentId}/prove', 'post'), [
    ...['200', '400', '401', '402', '408', '429', '500', '503'],
  ])
  assert.deepEqual(responses('/.well-known/gate-jwks.json', 'get'), ['200', '500', '503'])
})
