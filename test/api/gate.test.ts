import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import type { GateAuthorization, GateQuote } from '../../src/client/index.ts'
import { tokenOf } from '../../src/lib/ids.ts'
import { parseChallenges } from '../../src/protocol/auth-params.ts'
import { bindingText } from '../../src/protocol/gate-binding.ts'
import {
  decodeChargeRequest,
  type PaymentChallenge,
  paymentChallenges,
  serialisePaymentCredential,
} from '../../src/protocol/payment-auth.ts'
import { register } from '../support/gate.ts'
import { startServer } from '../support/server.ts'

const BODY = '{"size": 2}'
const PATH = '/render/cat?size=2'

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

test('the provider is believed without a preimage', async (t) => {
  const { clock, pay, gate } = await aShop(t)
  const quote = await gate.intent({ route: 'ping', method: 'GET', path: '/ping' })
  await pay(quote.bolt11)
  clock.advance(2_000)
  const outcome = await gate.poll(quote.intentId)
  assert.equal(outcome.settled && outcome.verifiedBy, 'provider')
})

describe('what the answers hold', () => {
  test('the quote', async (t) => {
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

  test('the challenge, of the same intent and invoice', async (t) => {
    const { create } = await aShop(t)
    const key = randomUUID()
    const quote = (await create({ key })).body as GateQuote
    const { status, headers, body } = await create({ key, 'x-payment-protocol': ' Payment ' })
    assert.equal(status, 402)
    assert.equal(headers.get('content-type'), 'application/problem+json; charset=utf-8')
    const challenge = challengeOf(headers)
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

  test('the authorization, with the receipt in its header too', async (t) => {
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
    assert.match(receiptId, /^[0-9a-f-]{36}$/)
  })

  test('after it the same quote is 402 and settled, with nothing to pay', async (t) => {
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

describe('who may ask', () => {
  test('a capability that is missing, malformed, unknown or of another project is 401', async (t) => {
    const { create, file, prove, poll, pay } = await aShop(t)
    const quote = (await create({})).body as GateQuote
    const preimage = await pay(quote.bolt11)
    const other = await register(file)
    const unknown = tokenOf('gate_key', new Uint8Array(32))
    for (const authorization of [
      '',
      'Basic abc',
      'Bearer x',
      `Bearer ${tokenOf('catch_owner', new Uint8Array(32))}`,
      `Bearer ${unknown}`,
      `Bearer ${unknown.slice(0, -1)}`,
    ]) {
      for (const answer of [
        await create({ authorization }),
        await prove(quote, { preimage, authorization }),
        await poll(quote.intentId, { authorization }),
      ]) {
        assert.equal(answer.status, 401)
        assert.deepEqual(answer.body, { error: 'invalid project capability' })
        assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
      }
    }
    const authorization = `Bearer ${other.capability}`
    for (const answer of [
      await create({ authorization }),
      await prove(quote, { preimage, authorization }),
    ]) {
      assert.deepEqual(answer.body, { error: 'invalid project capability' })
      assert.equal(answer.status, 401)
    }
  })

  test('an intent that is unknown or of another project looks the same', async (t) => {
    const { create, file, prove, poll, pay } = await aShop(t)
    const quote = (await create({})).body as GateQuote
    const preimage = await pay(quote.bolt11)
    const other = await register(file)
    const theirs = {
      authorization: `Bearer ${other.capability}`,
      'x-gate-project': other.projectId,
    }
    for (const answer of [
      await prove(quote, { preimage, ...theirs }),
      await poll(quote.intentId, theirs),
      await prove({ ...quote, intentId: `gate_intent_${'0'.repeat(22)}` }, { preimage }),
      await prove({ ...quote, intentId: 'x' }, { preimage }),
      await poll(`gate_intent_${'0'.repeat(22)}`),
      await prove(quote, { preimage, 'x-gate-path': '/render/dog' }),
      await prove(quote, { preimage, 'x-gate-method': 'GET' }),
      await poll(quote.intentId, { 'x-gate-path': '/render/dog' }),
    ]) {
      assert.equal(answer.status, 401)
      assert.deepEqual(answer.body, { error: 'intent mismatch' })
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
    }
  })

  test('a suspended project offers nothing new, and honours what was paid', async (t) => {
    const { create, prove, pay, projects, projectId } = await aShop(t)
    const key = randomUUID()
    const quote = (await create({ key })).body as GateQuote
    await projects((some) => some.suspend(projectId))
    assert.equal((await create({ key })).status, 401)
    assert.equal((await create({})).status, 401)
    assert.equal((await prove(quote, { preimage: await pay(quote.bolt11) })).status, 200)
    await projects((some) => some.resume(projectId))
    assert.equal((await create({})).status, 402)
  })

  test('a capability that was replaced opens nothing any more', async (t) => {
    const { create, projects, projectId } = await aShop(t)
    const capability = await projects((some) => some.rotateKey(projectId))
    assert.equal((await create({})).status, 401)
    assert.equal((await create({ authorization: `Bearer ${capability}` })).status, 402)
  })

  test('a Payment credential creates no intent', async (t) => {
    const { create, pay } = await aShop(t)
    const { headers } = await create({ 'x-payment-protocol': 'payment' })
    const challenge = challengeOf(headers)
    const invoice = decodeChargeRequest(challenge.request)?.methodDetails.invoice ?? ''
    const preimage = await pay(invoice)
    const authorization = serialisePaymentCredential({ challenge, payload: { preimage } })
    const answer = await create({ authorization })
    assert.equal(answer.status, 401)
    assert.deepEqual(answer.body, { error: 'invalid project capability' })
  })
})

describe('what an intent is asked with', () => {
  const rows: { note: string; ask: Ask; error: string }[] = [
    { note: 'no key', ask: { key: null }, error: 'invalid idempotency key' },
    { note: 'a short key', ask: { key: 'seven77' }, error: 'invalid idempotency key' },
    { note: 'a long key', ask: { key: 'k'.repeat(129) }, error: 'invalid idempotency key' },
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
    test(`${note} is 400 ${error}`, async (t) => {
      const { create } = await aShop(t)
      const answer = await create(ask)
      assert.deepEqual(answer.body, { error })
      assert.equal(answer.status, 400)
    })
  }

  test('the same key with another body is 400', async (t) => {
    const { create } = await aShop(t)
    const key = randomUUID()
    await create({ key })
    const answer = await create({ key, body: '{"size":2}' })
    assert.equal(answer.status, 400)
    assert.deepEqual(answer.body, { error: 'idempotency key reused with a different request' })
  })

  test('the bytes count, not what they are called', async (t) => {
    const { create } = await aShop(t)
    const key = randomUUID()
    const first = await create({ key })
    const again = await create({ key, 'content-type': 'application/octet-stream' })
    assert.deepEqual(again.body, first.body)
    // Never read as JSON, so it need not be any.
    assert.equal((await create({ body: '{"size": ' })).status, 402)
    assert.equal((await create({ body: '', 'content-type': null })).status, 402)
  })

  test('without credits it is 403', async (t) => {
    const { create } = await aShop(t, { credits: 0 })
    const answer = await create({})
    assert.equal(answer.status, 403)
    assert.deepEqual(answer.body, { error: 'no credits' })
  })
})

describe('a proof', () => {
  test('is one preimage in lower-case hex and nothing else', async (t) => {
    const { create, proveRaw } = await aShop(t)
    const { intentId } = (await create({})).body as GateQuote
    for (const body of [
      '',
      '{',
      'null',
      '[]',
      '{}',
      '{"preimage":7}',
      `{"preimage":"${'AB'.repeat(32)}"}`,
      `{"preimage":"${'ab'.repeat(31)}"}`,
      `{"preimage":"${'zz'.repeat(32)}"}`,
      `{"preimage":"${'ab'.repeat(32)}","x":1}`,
    ]) {
      const answer = await proveRaw(intentId, body)
      assert.equal(answer.status, 400, body)
      assert.deepEqual(answer.body, { error: 'malformed proof' }, body)
    }
  })

  test('of another intent is 402, and takes no credit', async (t) => {
    const { create, prove, pay, projects, projectId } = await aShop(t)
    const [mine, other] = [await create({}), await create({})].map(({ body }) => body as GateQuote)
    assert.ok(mine && other)
    const answer = await prove(mine, { preimage: await pay(other.bolt11) })
    assert.equal(answer.status, 402)
    assert.deepEqual(answer.body, {
      settled: false,
      intentId: mine.intentId,
      status: 'pending',
      verification: 'provider',
      expiresAt: mine.expiresAt,
      error: 'payment not verified',
    })
    assert.equal(answer.headers.get('www-authenticate'), null)
    assert.equal((await projects((some) => some.show(projectId))).credits, 10)
  })

  test('sent 50 times at once costs one credit and gets 50 equal answers', async (t) => {
    const { create, prove, pay, projects, projectId } = await aShop(t)
    const quote = (await create({})).body as GateQuote
    const preimage = await pay(quote.bolt11)
    const answers = await Promise.all(Array.from({ length: 50 }, () => prove(quote, { preimage })))
    for (const { status, body } of answers) {
      assert.equal(status, 200)
      assert.deepEqual(body, answers[0]?.body)
    }
    assert.equal((await projects((some) => some.show(projectId))).credits, 9)
  })

  test('comes back with the same receipt after a restart', async (t) => {
    const shop = await aShop(t)
    const quote = (await shop.create({})).body as GateQuote
    const preimage = await shop.pay(quote.bolt11)
    const { body } = await shop.prove(quote, { preimage })
    await shop.restart()
    assert.deepEqual((await shop.prove(quote, { preimage })).body, body)
    assert.deepEqual((await shop.poll(quote.intentId)).body, body)
  })
})

describe('a Payment credential', () => {
  test('proves its own intent, without the capability', async (t) => {
    const { credentialOf, prove } = await aShop(t)
    const { quote, preimage, authorization } = await credentialOf()
    const answer = await prove(quote, { preimage, authorization, ...bound(quote) })
    assert.equal(answer.status, 200)
    assert.equal((answer.body as GateAuthorization).verifiedBy, 'preimage')
    assert.deepEqual(
      (await prove(quote, { preimage, authorization, ...bound(quote) })).body,
      answer.body,
    )
  })

  test('proves it without the members that some payers drop', async (t) => {
    const { credentialOf, prove } = await aShop(t)
    const { quote, preimage, challenge } = await credentialOf()
    const { digest, ...rest } = challenge
    assert.ok(digest)
    const authorization = serialisePaymentCredential({ challenge: rest, payload: { preimage } })
    assert.equal((await prove(quote, { preimage, authorization, ...bound(quote) })).status, 200)
  })

  test('is honoured after the quote, and after the secret was changed', async (t) => {
    const environment = { MAYFLY_SECRET: '11'.repeat(32) }
    const { credentialOf, prove, clock, restart } = await aShop(t, { environment })
    const { quote, preimage, authorization } = await credentialOf()
    environment.MAYFLY_SECRET = `${'22'.repeat(32)},${environment.MAYFLY_SECRET}`
    await restart()
    clock.advance(1_000_000)
    assert.equal((await prove(quote, { preimage, authorization, ...bound(quote) })).status, 200)
  })

  test('for anything else is 401, and authorizes nothing', async (t) => {
    const shop = await aShop(t)
    const { credentialOf, prove, projects, projectId, file } = shop
    const mine = await credentialOf()
    const other = await credentialOf({ 'x-gate-path': '/render/dog' })
    const stranger = await register(file)
    const right = { ...bound(mine.quote), authorization: mine.authorization }
    const withChallenge = (changes: Partial<PaymentChallenge>, preimage = mine.preimage) =>
      serialisePaymentCredential({
        challenge: { ...mine.challenge, ...changes },
        payload: { preimage },
      })
    const { preimage } = mine
    const asks: Ask[] = [
      { ...right, 'x-gate-path': '/render/dog' },
      { ...right, 'x-gate-path': '/render/cat' },
      { ...right, 'x-gate-method': 'GET' },
      { ...right, 'x-gate-method': null },
      { ...right, 'x-gate-path': null },
      { ...right, 'x-gate-project': stranger.projectId },
      { ...right, 'x-gate-project': null },
      { ...right, authorization: other.authorization },
      { ...right, authorization: withChallenge({ id: other.challenge.id }) },
      { ...right, authorization: withChallenge({ realm: 'elsewhere' }) },
      { ...right, authorization: withChallenge({ expires: '2040-01-01T00:00:00Z' }) },
      {
        ...right,
        authorization: withChallenge({
          digest: other.challenge.digest ?? '',
          request: other.challenge.request,
        }),
      },
      { ...right, authorization: withChallenge({ digest: 'sha-256=:AAAA:' }) },
      { ...right, authorization: withChallenge({}, other.preimage) },
      { ...right, authorization: 'Payment' },
      { ...right, authorization: 'Payment e30' },
      { ...right, authorization: `${mine.authorization}, Payment e30` },
    ]
    for (const ask of asks) {
      const answer = await prove(mine.quote, { preimage, ...ask })
      assert.deepEqual(answer.body, { error: 'intent mismatch' }, JSON.stringify(ask))
      assert.equal(answer.status, 401)
    }
    const elsewhere = await prove(other.quote, { preimage, ...right })
    assert.deepEqual(elsewhere.body, { error: 'intent mismatch' })
    assert.equal((await projects((some) => some.show(projectId))).credits, 10)
    assert.equal((await prove(mine.quote, { preimage, ...right })).status, 200)
  })

  test('whose preimage opens nothing is 402 without a challenge', async (t) => {
    const { credentialOf, prove } = await aShop(t)
    const { quote, challenge } = await credentialOf()
    const preimage = '00'.repeat(32)
    const authorization = serialisePaymentCredential({ challenge, payload: { preimage } })
    const answer = await prove(quote, { preimage, authorization, ...bound(quote) })
    assert.equal(answer.status, 402)
    assert.equal(answer.headers.get('www-authenticate'), null)
  })
})

describe('the key set', () => {
  test('is public, may be cached, and verifies what was signed', async (t) => {
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

  test('keeps the previous key through a rotation', async (t) => {
    const [old, fresh] = ['11'.repeat(32), '22'.repeat(32)]
    const environment = { MAYFLY_SECRET: old }
    const { url, restart } = await aShop(t, { environment })
    const before = await keyIds(url)
    environment.MAYFLY_SECRET = `${fresh},${old}`
    const { url: after } = await restart()
    assert.deepEqual((await keyIds(after)).slice(1), before)
  })
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

test('requests of a project are limited together', async (t) => {
  const { create, poll } = await aShop(t, { environment: { MAYFLY_RATE_LIMITS: 'on' } })
  const { intentId } = (await create({})).body as GateQuote
  const answers = await Promise.all(Array.from({ length: 121 }, () => poll(intentId)))
  const refused = answers.filter(({ status }) => status === 429)
  assert.ok(refused.length >= 1)
  assert.match(refused[0]?.headers.get('retry-after') ?? '', /^\d+$/)
})

test('none of it is there unless it is switched on', async (t) => {
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

test('when it is, the document describes all of it', async (t) => {
  const { url } = await aShop(t)
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { responses: Record<string, unknown> }>>
  }
  const responses = (path: string, method: string) =>
    Object.keys(document.paths[path]?.[method]?.responses ?? {})
  assert.deepEqual(responses('/api/gate/intents', 'post'), [
    ...['400', '401', '402', '403', '408', '429', '500', '503'],
  ])
  assert.deepEqual(responses('/api/gate/intents/{intentId}', 'get'), [
    ...['200', '401', '402', '429', '500'],
  ])
  assert.deepEqual(responses('/api/gate/intents/{intentId}/prove', 'post'), [
    ...['200', '400', '401', '402', '408', '429', '500'],
  ])
  assert.deepEqual(responses('/.well-known/gate-jwks.json', 'get'), ['200', '500'])
})

type Ask = Record<string, string | null>
type Answer = { status: number; headers: Headers; body: unknown }

async function aShop(
  t: TestContext,
  {
    credits = 10,
    environment = {},
  }: { credits?: number; environment?: Record<string, string> } = {},
) {
  // The same object at each start, so that a test may change it in between.
  environment.MAYFLY_GATE = 'on'
  const server = await startServer(t, environment)
  const { projectId, capability, projects } = await register(server.file, { credits })
  const own = { authorization: `Bearer ${capability}`, 'x-gate-project': projectId }

  async function send(method: string, path: string, ask: Ask, body?: string): Promise<Answer> {
    const headers = Object.entries(ask).filter((entry): entry is [string, string] => !!entry[1])
    const response = await fetch(server.url + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: bytes(body) }),
    })
    return { status: response.status, headers: response.headers, body: await response.json() }
  }

  const create = ({ key = randomUUID(), body = BODY, ...headers }: Ask) =>
    send(
      'POST',
      '/api/gate/intents',
      {
        ...own,
        'idempotency-key': key,
        'x-gate-route': 'render',
        'x-gate-method': 'POST',
        'x-gate-path': PATH,
        'content-type': 'application/json',
        ...headers,
      },
      body ?? '',
    )
  const proveRaw = (intentId: string, body: string, headers: Ask = {}) =>
    send(
      'POST',
      `/api/gate/intents/${intentId}/prove`,
      { ...own, 'content-type': 'application/json', ...headers },
      body,
    )
  const prove = ({ intentId }: GateQuote, { preimage, ...headers }: Ask) =>
    proveRaw(intentId, JSON.stringify({ preimage }), headers)

  return {
    ...server,
    projectId,
    capability,
    projects,
    gate: server.mayfly.gate({ projectId, capability }),
    create,
    prove,
    proveRaw,
    poll: (intentId: string, headers: Ask = {}) =>
      send('GET', `/api/gate/intents/${intentId}`, {
        authorization: own.authorization,
        ...headers,
      }),
    /** A challenge that was paid, and the credential for it. */
    async credentialOf(ask: Ask = {}) {
      const { headers, body } = await create({ ...ask, 'x-payment-protocol': 'payment' })
      const quote = body as GateQuote
      const challenge = challengeOf(headers)
      const preimage = await server.pay(quote.bolt11)
      const authorization = serialisePaymentCredential({ challenge, payload: { preimage } })
      return { quote, challenge, preimage, authorization }
    },
    async restart() {
      await server.restart()
      return server
    },
  }
}

/** What a payer sends along with a credential. */
const bound = ({ method, path }: GateQuote): Ask => ({
  'x-gate-method': method,
  'x-gate-path': path,
})

function challengeOf(headers: Headers): PaymentChallenge {
  const field = headers.get('www-authenticate') ?? ''
  const [challenge] = paymentChallenges(parseChallenges([field]) ?? [])
  if (!challenge) throw new Error('no Payment challenge')
  return challenge
}

function digestOf(project: string): string {
  const bodySha256 = createHash('sha256').update(BODY).digest('hex')
  const text = bindingText({ project, route: 'render', method: 'POST', path: PATH, bodySha256 })
  return createHash('sha256').update(text).digest('hex')
}

async function keyIds(url: string): Promise<string[]> {
  const response = await fetch(`${url}/.well-known/gate-jwks.json`)
  const { keys } = (await response.json()) as { keys: { kid: string }[] }
  return keys.map(({ kid }) => kid)
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}
