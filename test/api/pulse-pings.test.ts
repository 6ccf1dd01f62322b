import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { answerOf, NOT_FOUND } from '../support/answer.ts'
import {
  aMonitor,
  aServerWith,
  assertNowhere,
  DONE,
  ping,
  purchasePulse,
} from '../support/pulse.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { aToken, typo } from '../support/tokens.ts'

suite('a ping', () => {
  const theServer = shareServer()

  // test/api/every-route.test.ts has every form of a wrong token.
  test('a ping without the right token or id is not found, also once the server remembers the monitor', async () => {
    const server = await theServer()
    const [capability, other] = [await aMonitor(server), await aMonitor(server)]
    const { publicId, pingToken, ownerToken } = capability
    const { publicStatusId } = await server.mayfly.pulse(capability).status()
    for (const isKnown of [false, true]) {
      if (isKnown) assert.deepEqual(await ping(server, capability), DONE)
      for (const token of [ownerToken, other.pingToken, aToken('pulse_ping'), typo(pingToken)]) {
        assert.deepEqual(await ping(server, { publicId, pingToken: token }), NOT_FOUND)
      }
      const ids = ['x', 'pulse_', `${publicId}x`, publicId.slice(0, -1), 'y'.repeat(300), '%00']
      for (const id of [...ids, publicStatusId]) {
        assert.deepEqual(await ping(server, { publicId: id, pingToken }), NOT_FOUND, id)
      }
    }
    assert.equal((await server.mayfly.pulse(capability).status()).acceptedHeartbeatCount, 1)
  })

  test('a ping leaves nothing of its body in the store or in the log', async (t) => {
    const server = await startServer(t, { MAYFLY_LOG_LEVEL: 'trace' })
    const capability = await aMonitor(server)
    const marker = 'only-in-the-body-5f2c'
    const bodies = [marker, `{"${marker}":1}`, `${marker} `.repeat(10_000)]
    for (const body of bodies) {
      const headers = { 'content-type': 'application/json' }
      assert.deepEqual(await ping(server, capability, { body, headers }), DONE)
    }
    await assertNowhere(server, [marker, capability.pingToken])
    assert.ok(server.logged.some((line) => line.includes('/p/:publicId')))
    assert.ok(!server.logged.some((line) => line.includes(`/p/${capability.publicId}`)))
  })

  test('exactly 100 of 200 pings at once are accepted where there is room for 100', async (t) => {
    const server = await aServerWith(t, { spark: { heartbeatLimit: 100 } })
    const capability = await aMonitor(server)
    const answers = await Promise.all(Array.from({ length: 200 }, () => ping(server, capability)))
    assert.equal(answers.filter(({ status }) => status === 204).length, 100)
    assert.equal(answers.filter(({ text }) => text === NOT_FOUND.text).length, 100)
    const status = await server.mayfly.pulse(capability).status()
    assert.equal(status.state, 'exhausted')
    assert.deepEqual([status.acceptedHeartbeatCount, status.remainingHeartbeats], [100, 0])
    assert.equal(status.recentHeartbeats.length, 100)
    assert.deepEqual(await ping(server, capability), NOT_FOUND)
    await server.restart()
    assert.deepEqual(await ping(server, capability), NOT_FOUND)
  })
})

const LIMITED = { status: 429, text: '{"error":"rate limited"}' }

test('a monitor takes five pings at once, and a refused one costs no heartbeat and ends no replay', async (t) => {
  const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
  const key = randomUUID()
  const capability = await aMonitor(server, 'spark', key)
  const other = await aMonitor(server)
  for (let i = 0; i < 6; i++) {
    assert.deepEqual(await ping(server, { ...capability, pingToken: other.pingToken }), NOT_FOUND)
  }
  assert.equal((await purchasePulse(server, '{"planId":"spark"}', { key })).status, 200)
  for (let i = 0; i < 5; i++) assert.deepEqual(await ping(server, capability), DONE)
  const limited = await fetch(`${server.url}/p/${capability.publicId}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${capability.pingToken}` },
  })
  assert.match(limited.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  assert.deepEqual(await answerOf(limited), LIMITED)
  assert.deepEqual(await ping(server, other), DONE, 'every monitor has its own')
  const { acceptedHeartbeatCount } = await server.mayfly.pulse(capability).status()
  assert.equal(acceptedHeartbeatCount, 5)
})
