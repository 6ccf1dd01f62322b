import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { PULSE_PLANS, PulsePlan } from '../../src/pulse/schema.ts'
import { readPlans } from '../../src/service/catalog.ts'
import { answerOf, NOT_FOUND } from '../support/answer.ts'
import {
  aMonitor,
  aServerWith,
  assertNowhere,
  DONE,
  INVALID_BODY,
  INVALID_SETTINGS,
  owner,
  patch,
  ping,
  purchasePulse,
} from '../support/pulse.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'

const SECOND = 1_000

test('a stranger buys a monitor, pings it, reads it, names it and ends it', async (t) => {
  const { mayfly, pay } = await startServer(t)
  const capability = await mayfly.buyPulse({
    planId: 'spark',
    onInvoice: ({ bolt11 }) => pay(bolt11),
  })
  const monitor = mayfly.pulse(capability)
  assert.equal((await monitor.status()).state, 'waiting')
  await monitor.ping()
  assert.equal((await monitor.status()).state, 'operational')
  const { publicStatusId } = await monitor.update({ name: 'backup', publicStatusEnabled: true })
  assert.equal((await mayfly.pulsePublicStatus(publicStatusId)).name, 'backup')
  await monitor.destroy()
  await assert.rejects(monitor.status(), { phrase: 'not found', status: 404 })
})

test('the catalogue has the plans of PULSE, with their limits and nothing else', async (t) => {
  const { mayfly } = await startServer(t)
  const { products } = await mayfly.catalog()
  assert.match(products.pulse.description, /no real money/)
  assert.deepEqual(
    products.pulse.plans.map(({ bestFor, ...plan }) => plan),
    [
      {
        planId: 'spark',
        priceSats: 50,
        durationLabel: '24 hours',
        available: true,
        heartbeatLimit: 4_500,
        suggestedCadenceSeconds: 60,
        minimumGraceSeconds: 60,
      },
      {
        planId: 'standard',
        priceSats: 300,
        durationLabel: '30 days',
        available: true,
        heartbeatLimit: 10_000,
        suggestedCadenceSeconds: 300,
        minimumGraceSeconds: 60,
      },
      {
        planId: 'long',
        priceSats: 900,
        durationLabel: '180 days',
        available: true,
        heartbeatLimit: 20_000,
        suggestedCadenceSeconds: 900,
        minimumGraceSeconds: 300,
      },
    ],
  )
})

test('a quote names product, plan and price, and a purchase of another shape gets none', async (t) => {
  const server = await startServer(t)
  const { status, text } = await purchasePulse(server, '{"planId":"standard"}')
  const { product, planId, amountSats, network } = JSON.parse(text)
  assert.deepEqual([status, product, planId], [402, 'pulse', 'standard'])
  assert.deepEqual([amountSats, network], [300, 'regtest'])
  assert.deepEqual(await purchasePulse(server, '{"planId":"mega"}'), {
    status: 400,
    text: '{"error":"invalid plan"}',
  })
  assert.deepEqual(await purchasePulse(server, '{"planId":"spark","name":"x"}'), INVALID_BODY)
  assert.equal((await query(server, 'select * from purchase_order')).length, 1)
})

test('the file of the operator changes plans, and a plan that is not on sale cannot be bought', async (t) => {
  const server = await aServerWith(t, {
    spark: { priceSats: 7, heartbeatLimit: 1, suggestedCadenceSeconds: 5, minimumGraceSeconds: 1 },
    long: { available: false },
  })
  const capability = await aMonitor(server)
  const { expectedIntervalSeconds, graceSeconds, heartbeatLimit } = await server.mayfly
    .pulse(capability)
    .status()
  assert.deepEqual([expectedIntervalSeconds, graceSeconds, heartbeatLimit], [20, 60, 1])
  assert.deepEqual(await purchasePulse(server, '{"planId":"long"}'), {
    status: 400,
    text: '{"error":"invalid plan"}',
  })
})

test('a plan that cannot be sold stops the start', () => {
  const pulse = { product: 'pulse', schema: PulsePlan, builtIn: PULSE_PLANS }
  for (const [plan, reason] of [
    [{ heartbeatLimit: 0 }, /pulse\.spark\.heartbeatLimit/],
    [{ minimumGraceSeconds: 1.5 }, /pulse\.spark\.minimumGraceSeconds/],
    [{ surprise: 1 }, /pulse\.spark/],
  ] as const) {
    const file = { pulse: { spark: plan } }
    assert.throws(() => readPlans(file, pulse), reason)
  }
})

test('a capability is two tokens of their own kinds, and is what the key gets again until a ping', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const body = '{"planId":"spark"}'
  const { bolt11, orderId } = JSON.parse((await purchasePulse(server, body, { key })).text)
  await server.pay(bolt11)
  server.clock.advance(2 * SECOND)
  const first = await answerOf(await fetch(`${server.url}/api/payments/${orderId}`))
  assert.equal(first.status, 200)
  const { settled, resource } = JSON.parse(first.text)
  assert.equal(settled, true)
  assert.deepEqual(Object.keys(resource), [
    'product',
    'publicId',
    'ownerToken',
    'pingToken',
    'expiresAt',
  ])
  assert.equal(resource.product, 'pulse')
  assert.match(resource.publicId, /^pulse_[0-9A-Za-z]{22}$/)
  assert.match(resource.ownerToken, /^pulse_owner_[0-9A-Za-z]{49}$/)
  assert.match(resource.pingToken, /^pulse_ping_[0-9A-Za-z]{49}$/)
  assert.deepEqual(await purchasePulse(server, body, { key }), first)

  assert.deepEqual(await ping(server, resource, { token: `${resource.pingToken}x` }), NOT_FOUND)
  assert.deepEqual(await purchasePulse(server, body, { key }), first, 'a refused ping is no use')
  assert.deepEqual(await ping(server, resource), DONE)
  assert.deepEqual(await purchasePulse(server, body, { key }), {
    status: 404,
    text: '{"error":"already delivered"}',
  })
})

test('every owner call that succeeds ends the replay too, and one that is refused does not', async (t) => {
  const server = await startServer(t)
  for (const [method, body] of [
    ['GET', undefined],
    ['PATCH', '{}'],
    ['DELETE', undefined],
  ] as const) {
    const key = randomUUID()
    const capability = await aMonitor(server, 'spark', key)
    const repeat = () => purchasePulse(server, '{"planId":"spark"}', { key })
    assert.equal((await repeat()).status, 200)
    assert.deepEqual(await patch(server, capability, '{"graceSeconds":1}'), INVALID_SETTINGS)
    assert.equal((await repeat()).status, 200)
    assert.ok((await owner(server, capability, { method, body })).status < 300, method)
    assert.equal((await repeat()).text, '{"error":"already delivered"}', method)
  }
})

test('the store holds no token', async (t) => {
  const server = await startServer(t)
  const { ownerToken, pingToken, publicId } = await aMonitor(server)
  await server.mayfly.pulse({ publicId, ownerToken, pingToken }).ping()
  await assertNowhere(server, [ownerToken, pingToken])
})
