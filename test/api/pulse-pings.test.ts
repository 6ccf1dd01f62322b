import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { answerOf, NOT_FOUND } from '../support/answer.ts'
import { aMonitor, aServerWith, assertNowhere, DONE, type Job, ping } from '../support/pulse.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { exchange } from '../support/socket.ts'
import { aToken, typo } from '../support/tokens.ts'

/** The most of an ignored body that is read for the sake of its connection. */
const LONG = 8 * 1024 * 1024

suite('a ping', () => {
  const theServer = shareServer()

  test('a ping without the one right token is not found, whatever is wrong with it', async () => {
    const server = await theServer()
    const capability = await aMonitor(server)
    const other = await aMonitor(server)
    const { publicId, pingToken } = capability
    const wrong: Record<string, string>[] = [
      {},
      { authorization: '' },
      { authorization: 'Bearer' },
      { authorization: 'Bearer x' },
      { authorization: pingToken },
      { authorization: `Basic ${pingToken}` },
      { authorization: `Bearer ${pingToken} ${pingToken}` },
      { authorization: `Bearer ${typo(pingToken)}` },
      { authorization: `Bearer ${capability.ownerToken}` },
      { authorization: `Bearer ${other.pingToken}` },
      { authorization: `Bearer ${aToken('pulse_ping')}` },
      { authorization: `Bearer ${aToken('catch_ingest')}` },
    ]
    for (const isKnown of [false, true]) {
      // Before and after the right token has made the server remember the monitor.
      if (isKnown) assert.deepEqual(await ping(server, capability), DONE)
      for (const headers of wrong) {
        const url = `${server.url}/p/${publicId}`
        const answer = await fetch(url, { method: 'POST', headers })
        assert.equal(answer.headers.get('www-authenticate'), null)
        assert.deepEqual(await answerOf(answer), NOT_FOUND, JSON.stringify(headers))
      }
    }
    for (const id of [
      'x',
      'pulse_',
      `${publicId}x`,
      publicId.slice(0, -1),
      'y'.repeat(300),
      '%00',
    ]) {
      assert.deepEqual(await ping(server, { publicId: id, pingToken }), NOT_FOUND, id)
    }
    const { publicStatusId, acceptedHeartbeatCount } = await server.mayfly
      .pulse(capability)
      .status()
    assert.deepEqual(await ping(server, { publicId: publicStatusId, pingToken }), NOT_FOUND)
    assert.equal(acceptedHeartbeatCount, 1)
    const twice = await exchange(
      server.url,
      `POST /p/${publicId} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${pingToken}\r\nAuthorization: Bearer ${pingToken}\r\nConnection: close\r\n\r\n`,
    )
    assert.equal(twice.status, 404)
  })

  test('the body of a ping is ignored, whatever its type and length, and even if it is broken', async () => {
    const server = await theServer()
    const capability = await aMonitor(server)
    const bodies: [note: string, body: string, headers: Record<string, string>][] = [
      ['JSON', '{"a":1}', { 'content-type': 'application/json' }],
      ['broken JSON', '{"a":', { 'content-type': 'application/json' }],
      ['no JSON at all', '', { 'content-type': 'application/json' }],
      ['a form', 'a=1&b=%ZZ', { 'content-type': 'application/x-www-form-urlencoded' }],
      ['parts without a boundary', 'x', { 'content-type': 'multipart/form-data' }],
      ['a type that is none', 'x', { 'content-type': 'json' }],
      ['a type of signs', 'x', { 'content-type': ';;=,/' }],
      ['a coding that it does not have', 'x', { 'content-encoding': 'gzip' }],
      ['a long text', 'x'.repeat(LONG), { 'content-type': 'text/plain' }],
    ]
    for (const [note, body, headers] of bodies) {
      assert.deepEqual(await ping(server, capability, { body, headers }), DONE, note)
    }
    assert.equal(
      (await server.mayfly.pulse(capability).status()).acceptedHeartbeatCount,
      bodies.length,
    )
  })

  test('a body is thrown away, and the connection goes on', async () => {
    const server = await theServer()
    const capability = await aMonitor(server)
    const body = 'x'.repeat(LONG)
    const long = await exchange(
      server.url,
      pingHead(capability, `Content-Length: ${LONG}`),
      body,
      pingHead(capability, 'Transfer-Encoding: chunked'),
      `${LONG.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      `POST /p/pulse_x HTTP/1.1\r\nHost: x\r\nContent-Length: ${LONG}\r\n\r\n`,
      body,
      pingHead(capability, 'Connection: close'),
    )
    assert.deepEqual(long.statuses, [204, 204, 404, 204])
    assert.equal((await server.mayfly.pulse(capability).status()).acceptedHeartbeatCount, 3)
  })

  test('a ping does not wait for its body', async () => {
    const server = await theServer()
    const capability = await aMonitor(server)
    for (const framing of ['Content-Length: 10', 'Content-Length: 100000000']) {
      const { hostname, port } = new URL(server.url)
      const socket = connect(Number(port), hostname)
      socket.write(pingHead(capability, framing))
      const [answer] = await new Promise<[Buffer]>((resolve) => {
        socket.once('data', (data) => resolve([data]))
      })
      assert.match(answer.toString('latin1'), /^HTTP\/1\.1 204 /, framing)
      socket.destroy()
    }
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

/** The head of a ping whose body is framed in this way. */
function pingHead({ publicId, pingToken }: Job, framing: string): string {
  return `POST /p/${publicId} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${pingToken}\r\n${framing}\r\n\r\n`
}
