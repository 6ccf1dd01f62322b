/** Rotating the ping token over HTTP: who may, what stops, and what a repeated purchase shows afterwards. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { NOT_FOUND } from '../support/answer.ts'
import { aMonitor, assertNowhere, DONE, ping, purchasePulse } from '../support/pulse.ts'
import { shareServer } from '../support/shared-server.ts'
import { mayflyError } from '../support/whisper.ts'

suite('another ping token', () => {
  const theServer = shareServer()

  test('the new token pings at once, and the one before does nothing more', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    assert.deepEqual(await ping(server, monitor), DONE)
    const { token: pingToken } = await server.mayfly.pulse(monitor).rotateToken('ping')
    assert.match(pingToken, /^pulse_ping_[0-9A-Za-z]{49}$/)
    assert.notEqual(pingToken, monitor.pingToken)
    assert.deepEqual(await ping(server, monitor), NOT_FOUND)
    await assert.rejects(server.mayfly.pulse(monitor).start(), mayflyError('not found', 404))
    assert.deepEqual(await ping(server, { ...monitor, pingToken }), DONE)
    const job = server.mayfly.pulse({ publicId: monitor.publicId, pingToken })
    await job.start()
    await job.exit(0)
    assert.equal((await server.mayfly.pulse(monitor).status()).acceptedHeartbeatCount, 4)
    await assertNowhere(server, [pingToken])
  })

  test('a purchase that is repeated after a rotation shows no token, so none that is dead', async () => {
    const server = await theServer()
    const key = randomUUID()
    const monitor = await aMonitor(server, 'spark', key)
    const repeat = () => purchasePulse(server, '{"planId":"spark"}', { key })
    assert.match((await repeat()).text, new RegExp(monitor.pingToken))
    await server.mayfly.pulse(monitor).rotateToken('ping')
    assert.deepEqual(await repeat(), { status: 404, text: '{"error":"already delivered"}' })
  })

  test('an owner whose answer was lost rotates again, and is never locked out', async () => {
    const server = await theServer()
    const monitor = await aMonitor(server)
    const owner = server.mayfly.pulse(monitor)
    const { token: lost } = await owner.rotateToken('ping')
    const { token: pingToken } = await owner.rotateToken('ping')
    assert.deepEqual(await ping(server, { ...monitor, pingToken: lost }), NOT_FOUND)
    assert.deepEqual(await ping(server, { ...monitor, pingToken }), DONE)
    assert.equal((await owner.status()).state, 'operational')
  })
})
