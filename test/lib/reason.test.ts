import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { causesOf, reasonOf } from '../../src/lib/reason.ts'
import { freePort } from '../support/ports.ts'

const failing = (code: string, message = ''): TypeError =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(message), { code }) })

test('a connection that failed is told in words', () => {
  const cases: [unknown, string | null][] = [
    [failing('ECONNREFUSED'), 'connection refused'],
    [failing('ENOTFOUND'), 'name not found'],
    [failing('CERT_HAS_EXPIRED'), 'its certificate has expired'],
    [failing('DEPTH_ZERO_SELF_SIGNED_CERT'), 'its certificate is signed by itself'],
    [failing('CERT_REVOKED'), 'its certificate is not valid'],
    [failing('HPE_INVALID_CONSTANT'), 'it does not speak HTTP'],
    [failing('UND_ERR_CONNECT_TIMEOUT', '(timeout: 10000ms)'), 'timed out after 10 s'],
    [
      new DOMException('The service did not answer in 60 s', 'TimeoutError'),
      'timed out after 60 s',
    ],
    [new DOMException('The operation was aborted due to timeout', 'TimeoutError'), 'timed out'],
    [new TypeError('fetch failed'), null],
    [new Error('ENOENT'), null],
    ['refused', null],
  ]
  for (const [error, reason] of cases) assert.equal(reasonOf(error), reason)
})

test('a name with several addresses that all refuse is told by the first', () => {
  const each = (): Error => Object.assign(new Error('x'), { code: 'ECONNREFUSED' })
  const all = new AggregateError([each(), each()])
  assert.equal(reasonOf(new TypeError('fetch failed', { cause: all })), 'connection refused')
})

test('an error that causes itself has an end', () => {
  const error = new Error('a loop')
  error.cause = error
  assert.equal(causesOf(error).length, 5)
  assert.equal(reasonOf(error), null)
})

test('what fetch really throws has a reason', async (t) => {
  const nobody = await freePort()
  const plain = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.end('SSH-2.0-OpenSSH_9.6\r\n')
  })
  const closing = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.destroy()
  })
  const ports: number[] = []
  for (const server of [plain, closing]) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    ports.push((server.address() as AddressInfo).port)
  }
  for (const [url, reason] of [
    [`http://127.0.0.1:${nobody}/`, 'connection refused'],
    [`http://localhost:${nobody}/`, 'connection refused'],
    [`http://127.0.0.1:${ports[0]}/`, 'it does not speak HTTP'],
    [`https://127.0.0.1:${ports[0]}/`, 'it does not speak TLS. Is it http, not https?'],
    [`http://127.0.0.1:${ports[1]}/`, 'the connection was closed before the answer'],
    ['http://127.0.0.1:9/', 'its port is one that is never used for HTTP'],
  ] as const) {
    const error = await fetch(url).catch((thrown: unknown) => thrown)
    assert.equal(reasonOf(error), reason, url)
  }
})
