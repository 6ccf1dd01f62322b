import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOT_FOUND } from '../support/answer.ts'
import { aMonitor, assertNowhere, DONE, owner, patch, ping, shared } from '../support/pulse.ts'
import { startServer } from '../support/server.ts'
import { query } from '../support/store.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
/** The server looks for what is over this often. */
const PURGE = 30_000

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

test('a monitor is destroyed once, also by 20 at once while it is pinged', async (t) => {
  const server = await startServer(t)
  const capability = await aMonitor(server)
  await ping(server, capability)
  const [destroyed] = await Promise.all([
    Promise.all(Array.from({ length: 20 }, () => owner(server, capability, { method: 'DELETE' }))),
    Promise.all(Array.from({ length: 20 }, () => ping(server, capability))),
  ])
  assert.equal(destroyed.filter(({ status }) => status === 204).length, 1)
  assert.equal(destroyed.filter(({ text }) => text === NOT_FOUND.text).length, 19)
  assert.deepEqual(await ping(server, capability), NOT_FOUND)
})

test('an expired monitor is shown for a day, and then it is gone', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const capability = await aMonitor(server)
  const ended = await aMonitor(server)
  const longer = await aMonitor(server, 'standard')
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

  t.mock.timers.tick(PURGE)
  server.clock.advance(DAY - MINUTE)
  await server.restart()
  assert.equal((await server.mayfly.pulse(capability).status()).state, 'expired')
  server.clock.advance(MINUTE)
  assert.deepEqual(await owner(server, capability, { method: 'GET' }), NOT_FOUND)
  assert.deepEqual(await owner(server, capability, { method: 'DELETE' }), NOT_FOUND)
  assert.deepEqual(await shared(server, publicStatusId), NOT_FOUND)

  t.mock.timers.tick(PURGE)
  await server.restart()
  assert.deepEqual(await query(server, 'select public_id from pulse_monitor'), [
    { public_id: longer.publicId },
  ])
  assert.ok(
    server.logged.some((line) =>
      line.includes('"event":"product.purged","product":"pulse","gone":1'),
    ),
  )
})

test('no byte of a destroyed or purged monitor stays in the files', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const destroyed = await aMonitor(server)
  const expired = await aMonitor(server)
  for (const [capability, name] of [
    [destroyed, 'marker-of-the-destroyed'],
    [expired, 'marker-of-the-expired'],
  ] as const) {
    await server.mayfly.pulse(capability).update({ name, description: name })
  }
  assert.deepEqual(await owner(server, destroyed, { method: 'DELETE' }), DONE)
  server.clock.advance(2 * DAY)
  t.mock.timers.tick(PURGE)
  // Stopping truncates the log, as the store does by itself within a minute.
  await server.restart()
  await assertNowhere(server, ['marker-of-the-destroyed', 'marker-of-the-expired'])
})
