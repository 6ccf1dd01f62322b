import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { answerOf, NOT_FOUND } from '../support/answer.ts'
import {
  aMonitor,
  assertNowhere,
  DONE,
  INVALID_SETTINGS,
  owner,
  patch,
  ping,
  purchasePulse,
} from '../support/pulse.ts'
import { startServer } from '../support/server.ts'

const SECOND = 1_000

test('a capability is two tokens of their own kinds, which nobody stores, and is what the key gets again until a ping', async (t) => {
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
  await assertNowhere(server, [resource.ownerToken, resource.pingToken])
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
