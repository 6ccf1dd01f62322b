import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOT_FOUND } from '../support/answer.ts'
import { aMonitor, DONE, owner, patch, ping, shared } from '../support/pulse.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

test('a destroyed monitor is gone at once, for everybody', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const other = await aMonitor(server)
  const monitor = server.mayfly.pulse(capability)
  await monitor.ping()
  const { publicStatusId } = await monitor.update({ name: 'gone', publicStatusEnabled: true })
  assert.deepEqual(await owner(server, capability, { method: 'DELETE' }), DONE)

  assert.deepEqual(await ping(server, capability), NOT_FOUND)
  assert.deepEqual(await owner(server, capability, { method: 'GET' }), NOT_FOUND)
  assert.deepEqual(await patch(server, capability, '{}'), NOT_FOUND)
  assert.deepEqual(await owner(server, capability, { method: 'DELETE' }), NOT_FOUND)
  assert.deepEqual(await shared(server, publicStatusId), NOT_FOUND)
  assert.deepEqual(await shared(server, `${publicStatusId}/badge.svg`), NOT_FOUND)
  assert.deepEqual(await query(server, 'select public_id from pulse_monitor'), [
    { public_id: other.publicId },
  ])
})

test('an expired monitor is shown for a day, and then to nobody', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const ended = await aMonitor(server)
  const monitor = server.mayfly.pulse(capability)
  await monitor.ping()
  const { publicStatusId } = await monitor.update({ name: 'job', publicStatusEnabled: true })

  server.clock.advance(DAY)
  assert.deepEqual(await ping(server, capability), NOT_FOUND)
  assert.equal((await monitor.status()).state, 'expired')
  assert.deepEqual(await patch(server, capability, '{}'), NOT_FOUND)
  assert.deepEqual(
    await owner(server, capability, { method: 'PATCH', body: 'no JSON', type: 'text/plain' }),
    NOT_FOUND,
  )
  assert.equal((await server.mayfly.pulsePublicStatus(publicStatusId)).state, 'expired')
  assert.match((await shared(server, `${publicStatusId}/badge.svg`)).text, />expired</)
  assert.equal((await monitor.history()).uptime.until, capability.expiresAt)
  assert.deepEqual(await owner(server, ended, { method: 'DELETE' }), DONE)
  assert.deepEqual(await owner(server, ended, { method: 'GET' }), NOT_FOUND)

  server.clock.advance(DAY - MINUTE)
  assert.equal((await monitor.status()).state, 'expired')
  server.clock.advance(MINUTE)
  assert.deepEqual(await owner(server, capability, { method: 'GET' }), NOT_FOUND)
  assert.deepEqual(await owner(server, capability, { method: 'DELETE' }), NOT_FOUND)
  assert.deepEqual(await shared(server, publicStatusId), NOT_FOUND)
})
