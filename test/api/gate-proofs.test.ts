import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import type { GateAuthorization, GateQuote } from '../../src/client/index.ts'
import {
  type PaymentChallenge,
  serialisePaymentCredential,
} from '../../src/protocol/payment-auth.ts'
import { temporaryFolder } from '../support/folder.ts'
import { register } from '../support/gate.ts'
import { type Ask, aShop } from '../support/gate-server.ts'

describe('a proof', () => {
  test('a proof is one preimage in lower-case hex and nothing else', async (t) => {
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

  test('a proof of another intent is 402, and takes no credit', async (t) => {
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
    assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
    assert.equal((await projects((some) => some.show(projectId))).credits, 10)
  })

  test('a proof with another preimage than that of its paid intent is told so, and not to wait', async (t) => {
    const { create, prove, pay } = await aShop(t)
    const quote = (await create({})).body as GateQuote
    await prove(quote, { preimage: await pay(quote.bolt11) })
    const answer = await prove(quote, { preimage: '00'.repeat(32) })
    assert.equal(answer.status, 401)
    assert.deepEqual(answer.body, { error: 'wrong preimage' })
    assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
  })

  test('a proof that comes ten minutes after its invoice and more is honoured: the project has the money', async (t) => {
    const { create, prove, pay, clock, logged } = await aShop(t)
    const quote = (await create({})).body as GateQuote
    const preimage = await pay(quote.bolt11)
    clock.advance(2 * 24 * 3600 * 1000)
    assert.equal((await prove(quote, { preimage })).status, 200)
    assert.ok(logged.some((line) => line.includes('gate.authorized_late')))
  })

  test('a proof without the name of its project is malformed', async (t) => {
    const { create, prove, pay } = await aShop(t)
    const quote = (await create({})).body as GateQuote
    const preimage = await pay(quote.bolt11)
    for (const project of [null, 'x']) {
      const answer = await prove(quote, { preimage, 'x-gate-project': project })
      assert.equal(answer.status, 400)
      assert.deepEqual(answer.body, { error: 'malformed proof' })
    }
  })

  test('a proof of another media type is refused as the document says', async (t) => {
    const { create, proveRaw } = await aShop(t)
    const { intentId } = (await create({})).body as GateQuote
    for (const type of ['text/plain', 'application/xml']) {
      const answer = await proveRaw(intentId, '{}', { 'content-type': type })
      assert.equal(answer.status, 400)
      assert.deepEqual(answer.body, { error: 'unsupported media type' }, type)
    }
  })

  test('a proof sent 50 times at once costs one credit and gets 50 equal answers', async (t) => {
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

  test('a proof comes back with the same receipt after a restart', async (t) => {
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
  test('a Payment credential proves its own intent, without the capability', async (t) => {
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

  test('a Payment credential proves it without the members that some payers drop', async (t) => {
    const { credentialOf, prove } = await aShop(t)
    const { quote, preimage, challenge } = await credentialOf()
    const { digest, ...rest } = challenge
    assert.ok(digest)
    const authorization = serialisePaymentCredential({ challenge: rest, payload: { preimage } })
    assert.equal((await prove(quote, { preimage, authorization, ...bound(quote) })).status, 200)
  })

  test('a Payment credential is honoured after the quote, and after the secret was changed', async (t) => {
    const environment = { MAYFLY_SECRET: '11'.repeat(32) }
    const { credentialOf, prove, clock, restart } = await aShop(t, { environment })
    const { quote, preimage, authorization } = await credentialOf()
    environment.MAYFLY_SECRET = `${'22'.repeat(32)},${environment.MAYFLY_SECRET}`
    await restart()
    clock.advance(1_000_000)
    assert.equal((await prove(quote, { preimage, authorization, ...bound(quote) })).status, 200)
  })

  test('a Payment credential is honoured after MAYFLY_BASE_URL was changed', async (t) => {
    const environment: Record<string, string> = {
      MAYFLY_SIMULATOR: 'public',
      MAYFLY_BASE_URL: 'https://old.example',
    }
    const { credentialOf, prove, restart } = await aShop(t, { environment })
    const { quote, preimage, authorization } = await credentialOf()
    environment.MAYFLY_BASE_URL = 'https://new.example'
    await restart()
    assert.equal((await prove(quote, { preimage, authorization, ...bound(quote) })).status, 200)
  })

  test('a Payment credential shown again and again uses up its own limit, and not that of the project', async (t) => {
    const limits = join(await temporaryFolder(t), 'rates.json')
    const rate = { perMinute: 1, burst: 3 }
    await writeFile(limits, JSON.stringify({ gate: rate, poll: rate }))
    const shop = await aShop(t, { environment: { MAYFLY_RATE_LIMITS: limits } })
    const { quote, authorization } = await shop.credentialOf()
    const wrong = { preimage: '00'.repeat(32), authorization, ...bound(quote) }
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await shop.prove(quote, wrong)).status)
    assert.deepEqual(statuses, [401, 401, 401, 429])
    assert.equal((await shop.create({})).status, 402)
  })

  test('a Payment credential for anything else is 401, and authorizes nothing', async (t) => {
    const shop = await aShop(t)
    const { credentialOf, prove, projects, projectId, databaseUrl } = shop
    const mine = await credentialOf()
    const other = await credentialOf({ 'x-gate-path': '/render/dog' })
    const stranger = await register({ databaseUrl })
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
      { ...right, authorization: other.authorization },
      { ...right, authorization: withChallenge({ id: other.challenge.id }) },
      { ...right, authorization: withChallenge({ realm: 'elsewhere' }) },
      { ...right, authorization: withChallenge({ realm: '127.0.0.1|lightning' }) },
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

  test('a Payment credential whose preimage opens nothing is 402 without a challenge', async (t) => {
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

  test('the key set keeps the previous key through a rotation', async (t) => {
    const [old, fresh] = ['11'.repeat(32), '22'.repeat(32)]
    const environment = { MAYFLY_SECRET: old }
    const { url, restart } = await aShop(t, { environment })
    const before = await keyIds(url)
    environment.MAYFLY_SECRET = `${fresh},${old}`
    const { url: after } = await restart()
    assert.deepEqual((await keyIds(after)).slice(1), before)
  })
})

/** What a payer sends along with a credential. */
const bound = ({ method, path }: GateQuote): Ask => ({
  'x-gate-method': method,
  'x-gate-path': path,
})

async function keyIds(url: string): Promise<string[]> {
  const response = await fetch(`${url}/.well-known/gate-jwks.json`)
  const { keys } = (await response.json()) as { keys: { kid: string }[] }
  return keys.map(({ kid }) => kid)
}
