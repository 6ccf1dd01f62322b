import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { GateAuthorization, GateQuote } from '../../src/client/index.ts'
import { decodeChargeRequest, serialisePaymentCredential } from '../../src/protocol/payment-auth.ts'
import { temporaryFolder } from '../support/folder.ts'
import { register } from '../support/gate.ts'
import { challengeOf } from '../support/gate-request.ts'
import { aShop } from '../support/gate-server.ts'
import { openapi } from '../support/openapi.ts'
import { startServer } from '../support/server.ts'

describe('the capability of a project', () => {
  test('an intent that is unknown or of another project looks the same', async (t) => {
    const { create, databaseUrl, prove, poll, pay } = await aShop(t)
    const quote = (await create({})).body as GateQuote
    const preimage = await pay(quote.bolt11)
    const other = await register({ databaseUrl })
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
    const challenge = challengeOf(headers.get('www-authenticate'))
    const invoice = decodeChargeRequest(challenge.request)?.methodDetails.invoice ?? ''
    const preimage = await pay(invoice)
    const authorization = serialisePaymentCredential({ challenge, payload: { preimage } })
    const answer = await create({ authorization })
    assert.equal(answer.status, 401)
    assert.deepEqual(answer.body, { error: 'invalid project capability' })
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

describe('visits that nobody pays', () => {
  const LIMITED = { MAYFLY_RATE_LIMITS: 'on' }

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

  test('unpaid visits are counted by the project where the network of the visitor is not one', async (t) => {
    const rates = join(await temporaryFolder(t), 'rates.json')
    await writeFile(rates, JSON.stringify({ gate: { perMinute: 1, burst: 2 } }))
    const { create } = await aShop(t, { environment: { MAYFLY_RATE_LIMITS: rates } })
    const made = ['203.0.113.7', '203.0.113.7/24', '203.0.113.0/25', 'x', 'a:b::/48', '']
    const statuses: number[] = []
    for (const network of made) {
      statuses.push((await create({ 'x-gate-visitor': network })).status)
    }
    assert.deepEqual(statuses, [402, 402, 429, 429, 429, 429])
  })

  test('unpaid visits with made-up intents use up the creating too, so that guessing is limited', async (t) => {
    const rates = join(await temporaryFolder(t), 'rates.json')
    await writeFile(rates, JSON.stringify({ gate: { perMinute: 1, burst: 2 } }))
    const shop = await aShop(t, { environment: { MAYFLY_RATE_LIMITS: rates } })
    const guess = () => shop.poll(`gate_intent_${'0'.repeat(22)}`)
    const statuses = [await guess(), await guess(), await guess()].map(({ status }) => status)
    assert.deepEqual(statuses, [401, 401, 429])
  })
})

test('polls and proofs of an intent are limited together, and for this intent alone', async (t) => {
  const { create, poll, prove } = await aShop(t, { environment: { MAYFLY_RATE_LIMITS: 'on' } })
  const [one, other] = [await create({}), await create({})].map(({ body }) => body as GateQuote)
  assert.ok(one && other)
  const answers = await Promise.all(Array.from({ length: 31 }, () => poll(one.intentId)))
  assert.equal(answers.filter(({ status }) => status === 429).length, 1)
  assert.equal((await prove(one, { preimage: '00'.repeat(32) })).status, 429)
  assert.equal((await poll(other.intentId)).status, 402)
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
