import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { answerOf, NOT_FOUND } from '../support/answer.ts'
import { aMonitor, DONE, ping, purchasePulse } from '../support/pulse.ts'
import { startServer } from '../support/server.ts'

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
