/** Polling, proving and giving back over HTTP: whose intent it is, and what each answer says. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { GateAuthorization } from '../../src/client/index.ts'
import type { PaymentChallenge } from '../../src/protocol/payment-auth.ts'
import { aShop, PATH, ROTATED, type Shop } from '../support/gate-app.ts'
import type { Fields } from '../support/http.ts'
import { paymentAuthorization } from '../support/payer.ts'
import { query } from '../support/store.ts'

const ONE = { perMinute: 0.01, burst: 1 }
const WRONG = '00'.repeat(32)
const DAY = 24 * 3600 * 1000
const NOBODYS = `gate_intent_${'0'.repeat(22)}`
const INVALID = { error: 'invalid project capability' }
const MISMATCH = { error: 'intent mismatch' }

/** The calls of one intent. */
const CALLS: Record<
  string,
  (shop: Shop, intentId: string, ask?: Fields) => ReturnType<Shop['poll']>
> = {
  poll: (shop, intentId, ask) => shop.poll(intentId, ask),
  prove: (shop, intentId, ask) => shop.prove(intentId, WRONG, ask),
  'give back': (shop, intentId, ask) => shop.giveBack(intentId, 'none', ask),
}
const REACHED: Record<string, number> = { poll: 402, prove: 402, 'give back': 409 }

for (const [name, call] of Object.entries(CALLS)) {
  test(`to ${name} takes the capability of the project of the intent`, async (t) => {
    const shop = await aShop(t)
    const { intentId } = await shop.quoted()
    const theirs = `Bearer ${shop.stranger.capability}`
    const refused = async (ask: Fields, id = intentId) => {
      const { status, headers, body } = await call(shop, id, ask)
      assert.equal(status, 401)
      assert.equal(headers['www-authenticate'], 'Bearer')
      return body
    }
    for (const authorization of [null, 'Bearer x', `Basic ${shop.own.authorization.slice(7)}`]) {
      assert.deepEqual(await refused({ authorization }), INVALID)
    }
    // Theirs is a good one, but the intent is not.
    const named = { authorization: theirs, 'x-gate-project': shop.stranger.projectId }
    assert.deepEqual(await refused(named), MISMATCH)
    for (const id of [NOBODYS, 'x']) assert.deepEqual(await refused({}, id), MISMATCH)
    assert.equal((await call(shop, intentId)).status, REACHED[name])
  })

  test(`to ${name} is refused for another request than that of the intent, if one is named`, async (t) => {
    const shop = await aShop(t)
    const { intentId } = await shop.quoted()
    for (const ask of [
      { 'x-gate-method': 'GET' },
      { 'x-gate-path': '/render/cat' },
      { 'x-gate-method': 'GET', 'x-gate-path': PATH },
      { 'x-gate-method': 'POST', 'x-gate-path': '/render/dog' },
      ...[{ 'x-gate-path': [PATH, '/render/dog'] }, { 'x-gate-method': ['POST', 'POST'] }],
    ]) {
      const { status, body } = await call(shop, intentId, ask)
      assert.deepEqual([status, body], [401, MISMATCH])
    }
    for (const ask of [
      { 'x-gate-method': 'POST' },
      { 'x-gate-path': PATH },
      { 'x-gate-method': 'POST', 'x-gate-path': PATH },
    ]) {
      assert.equal((await call(shop, intentId, ask)).status, REACHED[name])
    }
  })

  test(`to ${name} with made-up intents uses up the visits, and that of a real one does not`, async (t) => {
    const shop = await aShop(t, { gate: { ...ONE, burst: 2 } })
    const { intentId } = await shop.quoted()
    assert.equal((await call(shop, NOBODYS)).status, 401)
    assert.equal((await call(shop, NOBODYS)).status, 429)
    assert.equal((await call(shop, intentId)).status, REACHED[name])
  })

  test(`to ${name} with wrong capabilities uses up the tries of their sender`, async (t) => {
    const shop = await aShop(t, { badBearer: ONE })
    const { intentId } = await shop.quoted()
    const wrong = { authorization: 'Bearer x' }
    assert.equal((await call(shop, intentId, wrong)).status, 401)
    assert.equal((await call(shop, intentId, wrong)).status, 429)
    assert.equal((await call(shop, intentId)).status, REACHED[name])
  })
}

test('polls and proofs of one intent are limited together, and its give-backs by themselves', async (t) => {
  const shop = await aShop(t, { poll: { ...ONE, burst: 2 } })
  const [{ intentId }, other] = [await shop.quoted(), await shop.quoted()]
  assert.equal((await shop.poll(intentId)).status, 402)
  assert.equal((await shop.prove(intentId, WRONG)).status, 402)
  assert.equal((await shop.poll(intentId)).status, 429)
  const back = async () => (await shop.giveBack(intentId, 'none')).status
  assert.deepEqual([await back(), await back(), await back()], [409, 409, 429])
  assert.equal((await shop.poll(other.intentId)).status, 402)
  assert.equal((await shop.giveBack(other.intentId, 'none')).status, 409)
})

describe('a poll', () => {
  test('a poll of what is not paid says so, until when, and when to come back', async (t) => {
    const { poll, quoted, clock, server } = await aShop(t)
    const { intentId, expiresAt } = await quoted()
    const { status, headers, body } = await poll(intentId)
    const pending = { settled: false, intentId, expiresAt, error: 'payment not verified' }
    assert.equal(status, 402)
    assert.equal(headers['retry-after'], '2')
    assert.deepEqual(body, { ...pending, status: 'pending', verification: 'provider' })
    await query(server, 'update gate_intent set verify_url = null')
    assert.deepEqual((await poll(intentId)).body, {
      ...pending,
      status: 'proof_required',
      verification: 'preimage',
    })
    clock.advance(1_501_000)
    const over = await poll(intentId)
    assert.equal(over.status, 402)
    assert.equal(over.headers['retry-after'], undefined)
    assert.deepEqual(over.body, { ...pending, status: 'expired', verification: 'preimage' })
  })

  test('a poll of what is paid has the receipt that the proof had, once the provider was asked', async (t) => {
    const { poll, prove, quoted, pay, clock, projectId } = await aShop(t)
    const quote = await quoted()
    const preimage = await pay(quote)
    clock.advance(2_000)
    const { status, headers, body } = await poll(quote.intentId)
    const { receiptId, authorizedAt, expiresAt, receipt, ...rest } = body as GateAuthorization
    assert.equal(status, 200)
    assert.equal(headers['gate-receipt'], receipt)
    assert.equal(headers['cache-control'], 'private, no-store')
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
      verifiedBy: 'provider',
      creditsRemaining: 9,
    })
    assert.match(receiptId, /^gate_intent_[0-9A-Za-z]{22}\.0$/)
    assert.equal(Date.parse(expiresAt), (Math.floor(Date.parse(authorizedAt) / 1000) + 300) * 1000)
    assert.deepEqual((await prove(quote.intentId, preimage)).body, body)
  })
})

describe('a proof', () => {
  test('a proof is one preimage in lower-case hex and nothing else', async (t) => {
    const { quoted, proveRaw } = await aShop(t)
    const { intentId } = await quoted()
    const hex = 'ab'.repeat(32)
    for (const body of [
      ...['', '{', 'null', '[]', '{}', '{"preimage":7}'],
      ...[hex.toUpperCase(), hex.slice(2), `${hex}ab`, 'zz'.repeat(32)].map(
        (preimage) => `{"preimage":"${preimage}"}`,
      ),
      ...[`{"preimage":"${hex}","x":1}`, `{"preimage":"${hex}","preimage":"${hex}"}`],
    ]) {
      const answer = await proveRaw(intentId, body)
      assert.deepEqual([answer.status, phrase(answer)], [400, 'malformed proof'], body)
    }
    const text = await proveRaw(intentId, '{}', { 'content-type': 'text/plain' })
    assert.deepEqual([text.status, phrase(text)], [400, 'unsupported media type'])
  })

  test('a proof names its project, by an id, once', async (t) => {
    const { quoted, prove, own, stranger } = await aShop(t)
    const { intentId } = await quoted()
    const malformed = { field: 'X-Gate-Project', expected: 'the id of a project' }
    const id = own['x-gate-project']
    for (const project of [null, 'x', `x${id}`, `${id} x`, 'gate_project_', [id, id]]) {
      const { status, body } = await prove(intentId, WRONG, { 'x-gate-project': project })
      assert.deepEqual([status, body], [400, { error: 'malformed proof', ...malformed }])
    }
    const { status, body } = await prove(intentId, WRONG, { 'x-gate-project': stranger.projectId })
    assert.deepEqual([status, body], [401, INVALID])
  })

  test('a proof of what is not paid by it says when to come back, and takes no credit', async (t) => {
    const { quoted, prove, pay, projects, projectId } = await aShop(t)
    const [mine, other] = [await quoted(), await quoted()]
    const answer = await prove(mine.intentId, await pay(other))
    assert.equal(answer.status, 402)
    assert.equal(answer.headers['retry-after'], '2')
    assert.equal(phrase(answer), 'payment not verified')
    assert.equal((await projects((some) => some.show(projectId))).credits, 10)
  })

  test('a proof with another preimage than that of its paid intent is told so, and not to wait', async (t) => {
    const { quoted, prove, pay } = await aShop(t)
    const quote = await quoted()
    assert.equal((await prove(quote.intentId, await pay(quote))).status, 200)
    const { status, headers, body } = await prove(quote.intentId, WRONG)
    assert.deepEqual([status, body], [401, { error: 'wrong preimage' }])
    assert.equal(headers['www-authenticate'], 'Bearer')
    assert.equal(headers['retry-after'], undefined)
  })
})

describe('a Payment credential', () => {
  test('a Payment credential proves its own intent, without the capability, again and again', async (t) => {
    const { credential, prove } = await aShop(t)
    const { quote, preimage, sent } = await credential()
    const { status, body } = await prove(quote.intentId, preimage, sent)
    assert.equal(status, 200)
    assert.equal((body as GateAuthorization).verifiedBy, 'preimage')
    assert.deepEqual((await prove(quote.intentId, preimage, sent)).body, body)
  })

  test('a Payment credential is honoured without the members that some payers drop', async (t) => {
    const { credential, prove } = await aShop(t)
    const { quote, preimage, challenge, sent } = await credential()
    const { digest, ...rest } = challenge
    assert.ok(digest)
    const authorization = paymentAuthorization({ challenge: rest, payload: { preimage } })
    assert.equal((await prove(quote.intentId, preimage, { ...sent, authorization })).status, 200)
  })

  test('a Payment credential is honoured after the quote, another secret and another name of the service', async (t) => {
    const { credential, prove, clock, restart } = await aShop(t)
    const { quote, preimage, sent } = await credential()
    await restart({ MAYFLY_SECRET: ROTATED, MAYFLY_BASE_URL: 'https://other.mayfly.org' })
    clock.advance(1_000_000)
    assert.equal((await prove(quote.intentId, preimage, sent)).status, 200)
  })

  test('a Payment credential under a secret that is gone authorizes nothing', async (t) => {
    const { credential, prove, restart, clock } = await aShop(t)
    const { quote, preimage, sent } = await credential()
    clock.advance(DAY)
    await restart({ MAYFLY_SECRET: '02'.repeat(32) })
    const { status, body } = await prove(quote.intentId, preimage, sent)
    assert.deepEqual([status, body], [401, MISMATCH])
  })

  test('a Payment credential for anything else is refused, and authorizes nothing', async (t) => {
    const shop = await aShop(t)
    const mine = await shop.credential()
    const other = await shop.credential({ 'x-gate-path': '/render/dog' })
    const { quote, preimage, challenge, sent } = mine
    const made = (changes: Partial<PaymentChallenge>, by = preimage) => ({
      authorization: paymentAuthorization({
        challenge: { ...challenge, ...changes },
        payload: { preimage: by },
      }),
    })
    const { digest = '', request } = other.challenge
    const asks: Fields[] = [
      ...[{ 'x-gate-path': '/render/dog' }, { 'x-gate-method': 'GET' }],
      ...[{ 'x-gate-method': null }, { 'x-gate-path': null }],
      ...[{ 'x-gate-method': ['POST', 'POST'] }, { 'x-gate-path': [PATH, PATH] }],
      { 'x-gate-project': shop.stranger.projectId },
      { authorization: other.sent.authorization },
      ...[{ id: other.challenge.id }, { realm: 'elsewhere' }, { request, digest }].map((it) =>
        made(it),
      ),
      ...[{ expires: '2040-01-01T00:00:00Z' }, { digest: 'sha-256=:AAAA:' }].map((it) => made(it)),
      made({}, other.preimage),
      ...['Payment', 'Payment e30', `${sent.authorization}, Payment e30`].map((authorization) => ({
        authorization,
      })),
      { authorization: [sent.authorization, shop.own.authorization] },
      { authorization: [sent.authorization, sent.authorization] },
    ]
    for (const ask of asks) {
      const answer = await shop.prove(quote.intentId, preimage, { ...sent, ...ask })
      assert.deepEqual([answer.status, answer.body], [401, MISMATCH], JSON.stringify(ask))
      assert.equal(answer.headers['www-authenticate'], 'Bearer')
    }
    const elsewhere = await shop.prove(other.quote.intentId, preimage, sent)
    assert.deepEqual([elsewhere.status, elsewhere.body], [401, MISMATCH])
    assert.equal((await shop.projects((some) => some.show(shop.projectId))).credits, 10)
    assert.equal((await shop.prove(quote.intentId, preimage, sent)).status, 200)
  })

  test('a Payment credential whose preimage opens nothing is not paid, without a challenge', async (t) => {
    const { credential, prove } = await aShop(t)
    const { quote, challenge, sent } = await credential()
    const authorization = paymentAuthorization({ challenge, payload: { preimage: WRONG } })
    const { status, headers } = await prove(quote.intentId, WRONG, { ...sent, authorization })
    assert.equal(status, 402)
    assert.equal(headers['www-authenticate'], undefined)
  })

  test('a Payment credential uses up the limit of its intent, and a wrong one that of its sender', async (t) => {
    const rates = { poll: ONE, badBearer: ONE, gate: { ...ONE, burst: 2 } }
    const { credential, prove } = await aShop(t, rates)
    const [mine, other] = [await credential(), await credential()]
    const { quote, preimage, sent } = mine
    const wrong = { ...sent, 'x-gate-path': '/render/dog' }
    assert.equal((await prove(quote.intentId, preimage, wrong)).status, 401)
    assert.equal((await prove(quote.intentId, preimage, wrong)).status, 429)
    assert.equal((await prove(quote.intentId, preimage, sent)).status, 200)
    assert.equal((await prove(quote.intentId, preimage, sent)).status, 429)
    assert.equal((await prove(other.quote.intentId, other.preimage, other.sent)).status, 200)
  })
})

describe('giving back', () => {
  test('giving back the receipt of a request that failed is answered with nothing', async (t) => {
    const { quoted, prove, pay, giveBack } = await aShop(t)
    const quote = await quoted()
    const { body } = await prove(quote.intentId, await pay(quote))
    const back = await giveBack(quote.intentId, (body as GateAuthorization).receiptId)
    assert.deepEqual([back.status, back.body], [204, null])
  })

  test('giving back takes one receipt id and nothing else', async (t) => {
    const { quoted, giveBackRaw } = await aShop(t)
    const { intentId } = await quoted()
    for (const body of [
      ...['', '{}', '[]', '{"receiptId":7}', '{"receiptId":""}', '{"receiptId":"x","x":1}'],
      `{"receiptId":"${'x'.repeat(65)}"}`,
    ]) {
      const answer = await giveBackRaw(intentId, body)
      assert.deepEqual([answer.status, phrase(answer)], [400, 'invalid request body'], body)
    }
    assert.equal((await giveBackRaw(intentId, `{"receiptId":"${'x'.repeat(64)}"}`)).status, 409)
    const text = await giveBackRaw(intentId, '{}', { 'content-type': 'text/plain' })
    assert.deepEqual([text.status, phrase(text)], [400, 'unsupported media type'])
  })
})

test('the keys are public, may be kept for five minutes, and those of an older secret stay', async (t) => {
  const { get, restart } = await aShop(t)
  const keys = async () => {
    const { status, headers, body } = await get('/.well-known/gate-jwks.json')
    assert.deepEqual([status, headers['cache-control']], [200, 'public, max-age=300'])
    return (body as { keys: { kid: string; x: string }[] }).keys
  }
  const before = await keys()
  assert.deepEqual(
    before.map(({ kid, x, ...rest }) => [rest, kid.length, x.length]),
    [[{ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' }, 43, 43]],
  )
  await restart({ MAYFLY_SECRET: ROTATED })
  const [fresh, ...older] = await keys()
  assert.deepEqual(older, before)
  assert.notEqual(fresh?.x, before[0]?.x)
})

const phrase = ({ body }: { body: unknown }) => (body as { error?: string }).error
