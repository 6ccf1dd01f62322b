import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anInbox } from '../support/catch.ts'
import { openapi } from '../support/openapi.ts'
import { aMonitor } from '../support/pulse.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { exchange } from '../support/socket.ts'

const MIB = 1024 * 1024
/** The most of an ignored body that is read for the sake of its connection. */
const LONG = 8 * MIB

/** What a client sends with a request that takes no body, meant or not. */
const BODIES: [note: string, headers: string, body: string][] = [
  ['a JSON type and no body', 'Content-Type: application/json\r\n', ''],
  ['a JSON type and an empty body', 'Content-Type: application/json\r\nContent-Length: 0\r\n', ''],
  ['JSON', 'Content-Type: application/json\r\nContent-Length: 7\r\n', '{"a":1}'],
  ['broken JSON', 'Content-Type: application/json\r\nContent-Length: 5\r\n', '{"a":'],
  ['parts without a boundary', 'Content-Type: multipart/form-data\r\nContent-Length: 1\r\n', 'x'],
  ['a type that is none', 'Content-Type: ;;=,/\r\nContent-Length: 1\r\n', 'x'],
  ['a body of no type', 'Content-Length: 1\r\n', 'x'],
  ['a coding that it does not have', 'Content-Encoding: gzip\r\nContent-Length: 1\r\n', 'x'],
  ['chunks', 'Transfer-Encoding: chunked\r\n', '1\r\nx\r\n0\r\n\r\n'],
  ['a long body', `Content-Length: ${2 * MIB}\r\n`, 'x'.repeat(2 * MIB)],
  ['a body that never comes', 'Content-Length: 100000000\r\n', ''],
]

test('a DELETE destroys, whatever its body is and whatever type that says it has', async (t) => {
  const server = await startServer(t)
  for (const [note, headers, body] of BODIES) {
    const inbox = await anInbox(server)
    await fetch(`${server.url}/c/${inbox.publicId}`, { method: 'POST', body: 'x' })
    const [event] = (await server.mayfly.catch(inbox).page()).events
    const monitor = await aMonitor(server)
    const things: [path: string, token: string][] = [
      [`/api/catch/${inbox.publicId}/events/${event?.id}`, inbox.ownerToken],
      [`/api/catch/${inbox.publicId}`, inbox.ownerToken],
      [`/api/pulse/${monitor.publicId}`, monitor.ownerToken],
    ]
    for (const [path, token] of things) {
      const answer = await send(server, `DELETE ${path}`, { token, headers, body })
      assert.deepEqual(answer.statuses, [204], `${note}: ${path}`)
      const again = await send(server, `DELETE ${path}`, { token, headers, body })
      assert.deepEqual(again.statuses, [404], `${note}: ${path}, which is gone`)
    }
  }
})

test('a POST that takes no body does its work, whatever its body is and whatever type that says it has', async (t) => {
  const server = await startServer(t)
  const { paths } = await openapi(server, '/openapi-all.json')
  const targets = Object.entries(paths)
    .filter(
      ([path, { post }]) => /^\/(api\/(catch|pulse)|p)\//.test(path) && post && !post.requestBody,
    )
    .map(([path]) => path)
  assert.deepEqual(targets.toSorted(), [
    '/api/catch/{publicId}/tokens/{kind}',
    '/api/pulse/{publicId}/switch',
    '/api/pulse/{publicId}/tokens/{kind}',
    '/p/{publicId}',
    '/p/{publicId}/{signal}',
  ])
  for (const target of targets) {
    const isInbox = target.startsWith('/api/catch')
    const owned = isInbox ? await anInbox(server) : await aMonitor(server)
    const path = target
      .replace('{publicId}', owned.publicId)
      .replace('{kind}', isInbox ? 'ingest' : 'ping')
      .replace('{signal}', '0')
    const isPing = path.startsWith('/p/') && 'pingToken' in owned
    for (const [note, headers, body] of BODIES) {
      const { statuses } = await send(server, `POST ${path}`, {
        token: isPing ? owned.pingToken : owned.ownerToken,
        headers,
        body,
      })
      assert.deepEqual(statuses, [isPing ? 204 : 200], `${note}: ${target}`)
    }
    if (!isPing) continue
    const { acceptedHeartbeatCount } = await server.mayfly.pulse(owned).status()
    assert.equal(acceptedHeartbeatCount, BODIES.length, target)
  }
})

test('a body that nobody reads is thrown away, and the connection goes on', async (t) => {
  const server = await startServer(t)
  const [inbox, monitor] = [await anInbox(server), await aMonitor(server)]
  const body = 'x'.repeat(LONG)
  const length = `Content-Length: ${LONG}`
  const head = (target: string, token: string, framing: string): string =>
    `${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${framing}\r\n\r\n`
  const [destroy, ping] = [`DELETE /api/catch/${inbox.publicId}`, `POST /p/${monitor.publicId}`]
  const json = 'Content-Type: application/json\r\n'
  const { statuses } = await exchange(
    server.url,
    ...[head(destroy, 'catch_owner_wrong', json + length), body],
    ...[head(destroy, inbox.ownerToken, length), body],
    ...[head(ping, monitor.pingToken, length), body],
    head(ping, monitor.pingToken, 'Transfer-Encoding: chunked'),
    `${LONG.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    ...[head('POST /p/pulse_x', monitor.pingToken, length), body],
    head(destroy, inbox.ownerToken, 'Connection: close'),
  )
  assert.deepEqual(statuses, [401, 204, 204, 204, 404, 404])
})

const send = (
  { url }: TestServer,
  target: string,
  { token, headers, body }: { token: string; headers: string; body: string },
): ReturnType<typeof exchange> =>
  exchange(
    url,
    `${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n${headers}\r\n`,
    body,
  )
