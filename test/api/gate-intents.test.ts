import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { GateAuthorization, GateQuote } from '../../src/client/index.ts'
import { bindingText } from '../../src/protocol/gate-binding.ts'
import { decodeChargeRequest } from '../../src/protocol/payment-auth.ts'
import { BODY, challengeOf, PATH } from '../support/gate-request.ts'
import { type Ask, aShop, bytes } from '../support/gate-server.ts'

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

describe('the answers of GATE', () => {
  test('a quote has exactly the documented members', async (t) => {
    const { create, projectId, clock } = await aShop(t)
    const { status, headers, body } = await create({})
    const quote = body as GateQuote
    const { bolt11, paymentHash, expiresAt, intentId, ...rest } = quote
    assert.equal(status, 402)
    assert.deepEqual(rest, {
      projectId,
      routeId: 'render',
      method: 'POST',
      path: PATH,
      requestDigest: digestOf(projectId),
      amountSats: 50,
      recipient: 'alice@example.com',
      network: 'regtest',
      settled: false,
    })
    assert.match(bolt11, /^lnbcrt500n1/)
    assert.match(paymentHash, /^[0-9a-f]{64}$/)
    assert.match(intentId, /^gate_intent_[0-9A-Za-z]{22}$/)
    assert.match(expiresAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    assert.ok(Date.parse(expiresAt) <= clock.now() + 900_000)
    assert.equal(headers.get('www-authenticate'), null)
    assert.equal(headers.get('cache-control'), 'no-store')
  })

  test('a challenge names the same intent and invoice as the quote', async (t) => {
    const { create } = await aShop(t)
    const key = randomUUID()
    const quote = (await create({ key })).body as GateQuote
    const { status, headers, body } = await create({ key, 'x-payment-protocol': ' Payment ' })
    assert.equal(status, 402)
    assert.equal(headers.get('content-type'), 'application/problem+json; charset=utf-8')
    const challenge = challengeOf(headers.get('www-authenticate'))
    const request = decodeChargeRequest(challenge.request)
    assert.deepEqual(body, {
      type: 'https://paymentauth.org/problems/payment-required',
      title: 'Payment Required',
      status: 402,
      detail: 'Pay the invoice and repeat the identical request with the credential.',
      error: 'payment required',
      challengeId: challenge.id,
      challenge,
      request,
      ...quote,
    })
    assert.deepEqual(request, {
      amount: '50',
      currency: 'sat',
      externalId: quote.intentId,
      methodDetails: {
        invoice: quote.bolt11,
        network: 'regtest',
        paymentHash: quote.paymentHash,
      },
    })
    const sha256 = createHash('sha256').update(BODY).digest('base64')
    assert.equal(challenge.digest, `sha-256=:${sha256}:`)
    assert.equal(challenge.expires, quote.expiresAt)
  })

  test('an authorization has its receipt in a header too', async (t) => {
    const { create, prove, pay, projectId } = await aShop(t)
    const quote = (await create({})).body as GateQuote
    const { status, headers, body } = await prove(quote, { preimage: await pay(quote.bolt11) })
    const authorization = body as GateAuthorization
    const { receiptId, authorizedAt, expiresAt, receipt, ...rest } = authorization
    assert.equal(status, 200)
    assert.equal(headers.get('gate-receipt'), receipt)
    assert.equal(headers.get('cache-control'), 'private, no-store')
    assert.deepEqual(rest, {
      settled: true,
      intentId: quote.intentId,
      projectId,
      routeId: 'render',
      method: 'POST',
      path: PATH,
      requestDigest: quote.requestDigest,
      amountSats: 50,
      paymentHash: quote.paymentHash,
      verifiedBy: 'preimage',
      creditsRemaining: 9,
    })
    const seconds = Math.floor(Date.parse(authorizedAt) / 1000)
    assert.equal(Date.parse(expiresAt), (seconds + 300) * 1000)
    assert.match(receiptId, /^gate_intent_[0-9A-Za-z]{22}\.0$/)
  })

  test('a quote that is authorized is 402 and settled, with nothing to pay', async (t) => {
    const { create, prove, pay } = await aShop(t)
    const key = randomUUID()
    const quote = (await create({ key })).body as GateQuote
    await prove(quote, { preimage: await pay(quote.bolt11) })
    for (const protocol of [{}, { 'x-payment-protocol': 'payment' }]) {
      const { status, headers, body } = await create({ key, ...protocol })
      assert.equal(status, 402)
      assert.equal(headers.get('www-authenticate'), null)
      assert.deepEqual(body, { ...quote, settled: true })
    }
  })

  test('an expired quote is not offered again', async (t) => {
    const { create, clock, poll } = await aShop(t)
    const key = randomUUID()
    const quote = (await create({ key })).body as GateQuote
    clock.advance(901_000)
    const { status, headers, body } = await create({ key, 'x-payment-protocol': 'payment' })
    assert.equal(status, 402)
    assert.equal(headers.get('www-authenticate'), null)
    assert.deepEqual(body, quote)
    clock.advance(600_000)
    const over = (await poll(quote.intentId)).body as { status: string }
    assert.equal(over.status, 'expired')
  })

  test('a poll says when to come back', async (t) => {
    const { create, poll } = await aShop(t)
    const quote = (await create({})).body as GateQuote
    assert.equal((await poll(quote.intentId)).headers.get('retry-after'), '2')
  })
})

describe('creating an intent', () => {
  const rows: { note: string; ask: Ask; error: string }[] = [
    { note: 'no key', ask: { key: null }, error: 'invalid idempotency key' },
    { note: 'a short key', ask: { key: 'seven77' }, error: 'invalid idempotency key' },
    { note: 'a long key', ask: { key: 'k'.repeat(129) }, error: 'invalid idempotency key' },
    { note: 'no project', ask: { 'x-gate-project': null }, error: 'invalid binding' },
    { note: 'no route', ask: { 'x-gate-route': null }, error: 'invalid binding' },
    { note: 'an unknown route', ask: { 'x-gate-route': 'x' }, error: 'invalid binding' },
    { note: 'no method', ask: { 'x-gate-method': null }, error: 'invalid binding' },
    { note: 'another method', ask: { 'x-gate-method': 'PUT' }, error: 'invalid binding' },
    { note: 'no path', ask: { 'x-gate-path': null }, error: 'invalid binding' },
    { note: 'a way up', ask: { 'x-gate-path': '/render/a/../b' }, error: 'invalid binding' },
    { note: 'an encoded dot', ask: { 'x-gate-path': '/render/%2e' }, error: 'invalid binding' },
    { note: 'an encoded slash', ask: { 'x-gate-path': '/render/a%2Fb' }, error: 'invalid binding' },
    { note: 'two slashes', ask: { 'x-gate-path': '/render//a' }, error: 'invalid binding' },
    { note: 'what is not ASCII', ask: { 'x-gate-path': '/render/\xe9' }, error: 'invalid binding' },
    {
      note: 'L402, which GATE does not speak',
      ask: { 'x-payment-protocol': 'l402' },
      error: 'unknown payment protocol',
    },
    {
      note: 'a body of another type',
      ask: { 'content-type': 'text/plain' },
      error: 'unsupported media type',
    },
    {
      note: 'a coded body',
      ask: { 'content-encoding': 'gzip' },
      error: 'unsupported media type',
    },
    {
      note: 'a body above 1 MiB',
      ask: { 'content-type': 'application/octet-stream', body: 'x'.repeat(1024 * 1024 + 1) },
      error: 'request too large',
    },
  ]
  for (const { note, ask, error } of rows) {
    test(`an intent with ${note} is 400 ${error}`, async (t) => {
      const { create } = await aShop(t)
      const answer = await create(ask)
      assert.deepEqual(answer.body, { error })
      assert.equal(answer.status, 400)
    })
  }

  test('an intent with the key of another body is 400', async (t) => {
    const { create } = await aShop(t)
    const key = randomUUID()
    await create({ key })
    const answer = await create({ key, body: '{"size":2}' })
    assert.equal(answer.status, 400)
    assert.deepEqual(answer.body, { error: 'idempotency key reused with a different request' })
  })

  test('an intent is the same for the same bytes, whatever their media type', async (t) => {
    const { create } = await aShop(t)
    const key = randomUUID()
    const first = await create({ key })
    const again = await create({ key, 'content-type': 'application/octet-stream' })
    assert.deepEqual(again.body, first.body)
    // Never read as JSON, so it need not be any.
    assert.equal((await create({ body: '{"size": ' })).status, 402)
    assert.equal((await create({ body: '', 'content-type': null })).status, 402)
  })

  test('an intent without credits is 403', async (t) => {
    const { create } = await aShop(t, { credits: 0 })
    const answer = await create({})
    assert.equal(answer.status, 403)
    assert.deepEqual(answer.body, { error: 'no credits' })
  })
})

function digestOf(project: string): string {
  const bodySha256 = createHash('sha256').update(BODY).digest('hex')
  const text = bindingText({ project, route: 'render', method: 'POST', path: PATH, bodySha256 })
  return createHash('sha256').update(text).digest('hex')
}
