/** Creating an intent over HTTP: whose it is, what it must name, and what it answers. */
import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import type { GateQuote } from '../../src/client/index.ts'
import { bindingText } from '../../src/protocol/gate-binding.ts'
import { decodeChargeRequest } from '../../src/protocol/payment-auth.ts'
import { aShop, BODY, PATH } from '../support/gate-app.ts'
import type { Fields } from '../support/http.ts'
import { paymentChallengeIn } from '../support/payer.ts'
import { query } from '../support/store.ts'

const VISITOR = '203.0.113.0/24'

test('an intent of a request is answered as its quote, with nothing to cache', async (t) => {
  const { create, projectId, clock } = await aShop(t)
  const before = clock.now()
  const { status, headers, body } = await create()
  const { bolt11, paymentHash, expiresAt, intentId, ...rest } = body as GateQuote
  const bodySha256 = createHash('sha256').update(BODY).digest('hex')
  const binding = { project: projectId, route: 'render', method: 'POST', path: PATH, bodySha256 }
  assert.deepEqual(rest, {
    projectId,
    routeId: 'render',
    method: 'POST',
    path: PATH,
    network: 'regtest',
    amountSats: 50,
    recipient: 'alice@example.com',
    settled: false,
    requestDigest: createHash('sha256').update(bindingText(binding)).digest('hex'),
  })
  assert.match(bolt11, /^lnbcrt500n1/)
  assert.match(paymentHash, /^[0-9a-f]{64}$/)
  assert.match(intentId, /^gate_intent_[0-9A-Za-z]{22}$/)
  const madeAt = Date.parse(expiresAt) - 900_000
  assert.ok(madeAt > before - 1_000 && madeAt <= clock.now(), `${madeAt}, after ${before}`)
  assert.equal(status, 402)
  assert.equal(headers['www-authenticate'], undefined)
  assert.equal(headers['content-type'], 'application/json; charset=utf-8')
})

test('an intent of a key is the same for the same bytes, whatever their media type, and no other bytes', async (t) => {
  const { create } = await aShop(t)
  const key = { 'idempotency-key': randomUUID() }
  const first = await create(key)
  const other = { ...key, 'content-type': 'application/octet-stream' }
  assert.deepEqual((await create(other)).body, first.body)
  const again = await create(key, '{"size":2}')
  assert.equal(again.status, 400)
  assert.deepEqual(again.body, { error: 'idempotency key reused with a different request' })
})

test('an intent is made for a body that is no JSON, or empty and of no type, or of a megabyte', async (t) => {
  const { create } = await aShop(t)
  assert.equal((await create({}, '{"size": ')).status, 402)
  assert.equal((await create({ 'content-type': null }, '')).status, 402)
  assert.equal((await create({ 'content-encoding': 'Identity' })).status, 402)
  const octets = { 'content-type': 'application/octet-stream' }
  assert.equal((await create(octets, Buffer.alloc(1024 * 1024))).status, 402)
})

describe('an intent that is refused', () => {
  const lacks = (field: string) => ({ field, expected: 'one value' })
  const protocol = { field: 'X-Payment-Protocol', expected: 'payment' }
  const type = 'unsupported media type'
  const key = {
    error: 'invalid idempotency key',
    details: { field: 'Idempotency-Key', expected: '8 to 128 visible ASCII characters' },
  }
  const rows: { note: string; ask: Fields; error: string; details?: object }[] = [
    { note: 'without a key', ask: { 'idempotency-key': null }, ...key },
    { note: 'with a short key', ask: { 'idempotency-key': 'seven77' }, ...key },
    ...['project', 'route', 'method', 'path'].flatMap((name) =>
      [null, ['a', 'b']].map((value) => ({
        note: `with ${value === null ? 'no' : 'a second'} ${name}`,
        ask: { [`x-gate-${name}`]: value },
        error: 'invalid binding',
        details: lacks(`X-Gate-${name[0]?.toUpperCase()}${name.slice(1)}`),
      })),
    ),
    { note: 'for an unknown route', ask: { 'x-gate-route': 'x' }, error: 'invalid binding' },
    ...[
      { 'x-gate-path': '/x' },
      { 'x-gate-path': '/render/cat%2f..' },
      { 'x-gate-method': 'GET' },
      { 'x-gate-method': 'post' },
    ].map((ask) => ({
      note: `for ${Object.values(ask)}, which its route is not for`,
      ask,
      error: 'invalid binding',
    })),
    ...['l402', 'payments', ['payment', 'payment']].map((value) => ({
      note: `with the protocol ${value}`,
      ask: { 'x-payment-protocol': value },
      error: 'unknown payment protocol',
      details: protocol,
    })),
    {
      note: 'with a text',
      ask: { 'content-type': 'text/plain' },
      error: type,
      details: {
        field: 'Content-Type',
        expected: 'application/json or application/octet-stream',
      },
    },
    {
      note: 'with a coded body',
      ask: { 'content-encoding': 'gzip' },
      error: type,
      details: { field: 'Content-Encoding', expected: 'left out' },
    },
  ]
  const shop = aShop({ after })
  for (const { note, ask, error, details } of rows) {
    test(`an intent ${note} is refused: ${error}`, async () => {
      const { create } = await shop
      const { status, body } = await create(ask)
      assert.deepEqual([status, body], [400, { error, ...details }])
    })
  }

  test('an intent with a body above a megabyte is refused: request too large', async () => {
    const { create } = await shop
    const octets = { 'content-type': 'application/octet-stream' }
    const { status, body } = await create(octets, Buffer.alloc(1024 * 1024 + 1))
    assert.deepEqual([status, body], [400, { error: 'request too large' }])
  })

  test('an intent without an invoice of the provider is refused for now: checkout unavailable', async (t) => {
    const { create, server } = await aShop(t)
    await query(server, `update gate_project set address = 'no address'`)
    const { status, headers, body } = await create()
    assert.deepEqual([status, body], [503, { error: 'checkout unavailable' }])
    assert.match(headers['retry-after'] ?? '', /^[1-9]\d*$/)
  })
})

describe('the capability of a project', () => {
  test('a capability that is missing, malformed, unknown or of another project makes no intent', async (t) => {
    const { create, stranger, own } = await aShop(t)
    for (const authorization of [
      null,
      'Bearer x',
      own.authorization.replace('Bearer', 'Basic'),
      `Bearer ${stranger.capability}`,
      [own.authorization, own.authorization],
    ]) {
      const { status, headers, body } = await create({ authorization })
      assert.deepEqual([status, body], [401, { error: 'invalid project capability' }])
      assert.equal(headers['www-authenticate'], 'Bearer')
    }
  })

  test('a capability of a suspended project makes and finds no intent, and its visits count nowhere', async (t) => {
    const { create, projects, projectId } = await aShop(t, { gate: ONE })
    await projects((some) => some.suspend(projectId))
    for (let i = 0; i < 2; i++) {
      const { status, body } = await create()
      assert.deepEqual([status, body], [401, { error: 'invalid project capability' }])
    }
    await projects((some) => some.resume(projectId))
    assert.equal((await create()).status, 402)
  })

  test('wrong capabilities use up the tries of their sender', async (t) => {
    const { create } = await aShop(t, { badBearer: ONE })
    const wrong = { authorization: 'Bearer x' }
    assert.deepEqual([(await create(wrong)).status, (await create(wrong)).status], [401, 429])
    assert.equal((await create({ authorization: null })).status, 401)
    assert.equal((await create()).status, 402)
  })
})

describe('the challenge of an intent', () => {
  test('a challenge names the same intent and invoice as the quote, and binds the body', async (t) => {
    const { create } = await aShop(t)
    const key = { 'idempotency-key': randomUUID() }
    const quote = (await create(key)).body as GateQuote
    const { status, headers, body } = await create({ ...key, 'x-payment-protocol': ' Payment ' })
    assert.equal(status, 402)
    assert.equal(headers['content-type'], 'application/problem+json; charset=utf-8')
    const challenge = paymentChallengeIn(headers['www-authenticate'])
    const request = decodeChargeRequest(challenge.request)
    const { bolt11: invoice, network, paymentHash } = quote
    assert.deepEqual(request, {
      amount: '50',
      currency: 'sat',
      externalId: quote.intentId,
      methodDetails: { invoice, network, paymentHash },
    })
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
    const { id, digest, request: _, ...rest } = challenge
    assert.ok(id)
    assert.equal(digest, `sha-256=:${createHash('sha256').update(BODY).digest('base64')}:`)
    assert.deepEqual(rest, {
      realm: 'gate.mayfly.org',
      method: 'lightning',
      intent: 'charge',
      expires: quote.expiresAt,
    })
  })

  test('an intent that is paid or whose quote is over has nothing to pay, in either protocol', async (t) => {
    const { create, prove, pay, quoted, clock } = await aShop(t)
    const [paid, over] = [randomUUID(), randomUUID()].map((key) => ({ 'idempotency-key': key }))
    assert.ok(paid && over)
    const [one, other] = [await quoted(paid), await quoted(over)]
    assert.equal((await prove(one.intentId, await pay(one))).status, 200)
    clock.advance(901_000)
    const expected: [Fields, GateQuote][] = [
      [paid, { ...one, settled: true }],
      [over, other],
    ]
    for (const protocol of [{}, { 'x-payment-protocol': 'payment' }]) {
      for (const [key, quote] of expected) {
        const answer = await create({ ...key, ...protocol })
        assert.deepEqual([answer.status, answer.body], [402, quote])
        assert.equal(answer.headers['www-authenticate'], undefined)
      }
    }
  })
})

describe('visits that nobody pays', () => {
  const many = async (asks: Fields[], { create }: Awaited<ReturnType<typeof aShop>>) => {
    const statuses: number[] = []
    for (const ask of asks) statuses.push((await create(ask)).status)
    return statuses
  }
  const from = (network: string): Fields => ({ 'x-gate-visitor': network })

  test('visits are counted by the network of the visitor, for each project alone', async (t) => {
    const shop = await aShop(t, { gate: ONE, gateVisitor: ONE })
    const theirs = {
      ...from(VISITOR),
      authorization: `Bearer ${shop.stranger.capability}`,
      'x-gate-project': shop.stranger.projectId,
    }
    const asks = [from(VISITOR), from(VISITOR), from('2001:db8:1::/48'), theirs, {}, {}]
    assert.deepEqual(await many(asks, shop), [402, 429, 402, 402, 402, 429])
  })

  test('visits are counted by the project if the network is none, or there are two', async (t) => {
    const shop = await aShop(t, { gate: ONE })
    const both: Fields = { 'x-gate-visitor': [VISITOR, VISITOR] }
    const asks = [from('203.0.113.7'), both, from('203.0.113.0/25'), {}, from(VISITOR)]
    assert.deepEqual(await many(asks, shop), [402, 429, 429, 429, 402])
  })

  test('visits of one project leave room for those of another', async (t) => {
    const shop = await aShop(t, { gate: ONE })
    const theirs = {
      authorization: `Bearer ${shop.stranger.capability}`,
      'x-gate-project': shop.stranger.projectId,
    }
    assert.deepEqual(await many([{}, {}, theirs, theirs], shop), [402, 429, 402, 429])
  })
})

const ONE = { perMinute: 0.01, burst: 1 }
