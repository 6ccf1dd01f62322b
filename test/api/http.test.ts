import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { ask, assertError } from '../support/http.ts'
import { type Document, openapi } from '../support/openapi.ts'
import { aMonitor } from '../support/pulse.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'

const ID = 'catch_0000000000000000000000'
const SECOND = 1_000
const EVENT = '01890000-0000-7000-8000-000000000001'

suite('HTTP', () => {
  const theServer = shareServer()

  test('the health check says that the service is there, to GET and to HEAD', async () => {
    const { url } = await theServer()
    const answer = await fetch(`${url}/health`)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
    assert.equal(answer.headers.get('cache-control'), 'no-store')
    assert.equal(await answer.text(), '{"service":"mayfly","status":"ok"}')
    const head = await fetch(`${url}/health`, { method: 'HEAD' })
    assert.deepEqual([head.status, await head.text()], [200, ''])
  })

  test('an unknown path is 404, whatever is asked of it and sent along', async () => {
    const { url } = await theServer()
    const paths = [
      '/assets/x',
      '/buy/',
      '/api',
      '/api/',
      '/api/catalog/',
      '/api/Catalog',
      '//api/catalog',
      '/api//catalog',
      '/api/catch',
      `/api/catch/${ID}/`,
      `/api/catch/${ID}/events/${EVENT}/x`,
      '/api/payments/catch/x',
      '/api/payments/whisper/x',
      '/c',
      '/C/x',
      '/health/',
      '/.well-known/',
      '/..%2fapi%2fcatalog',
      '/x?y',
      '/%',
      '/%zz',
      '/api/%zz',
      '*',
    ]
    const json = 'Content-Type: application/json\r\nContent-Length: 1\r\n'
    const odd = 'Content-Type: nonsense\r\nContent-Length: 1\r\n'
    for (const path of paths) {
      for (const [method, headers, body] of [
        ['GET', '', ''],
        ['POST', json, '{'],
        ['POST', odd, 'x'],
        [
          'PUT',
          `Content-Length: 100000\r\n${'Content-Type: application/json\r\n'}`,
          'x'.repeat(1e5),
        ],
        ['DELETE', '', ''],
        ['QUERY', '', ''],
        ['PROPFIND', '', ''],
      ]) {
        const answer = await ask(url, `${method} ${path}`, { headers, body })
        assertError(answer, '404 not found', `${method} ${path}`)
      }
    }
  })

  test('an id that no escape decodes to is one that nobody has, on every path with an id', async () => {
    const { url } = await theServer()
    for (const id of ['%ff', '%', '%zz', '%c3%28', `${ID}%ff`, '%ff?%41', '%ff/%ff']) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const sent = await ask(url, `${method} /c/${id}`)
        assertError(sent, '401 catch unavailable', `${method} /c/${id}`)
      }
    }
    const origin = { headers: 'Origin: https://a.example\r\n' }
    for (const [request, error] of [
      ['GET /api/catch/%ff', '401 unauthorized'],
      ['GET /api/catch/%ff/events', '401 unauthorized'],
      [`DELETE /api/catch/${ID}/events/%ff`, '401 unauthorized'],
      ['GET /api/payments/%c3%28', '404 order not found'],
      ['POST /api/payments/%c3%28', '405 method not allowed'],
      ['GET /w/%ff', '404 not found'],
      ['POST /p/%ff', '404 not found'],
      ['GET /api/pulse/public/%ff', '404 not found'],
    ] as const) {
      const answer = await ask(url, request, origin)
      assertError(answer, error, request)
      assert.equal(answer.headers.get('access-control-allow-origin'), '*', request)
    }
  })

  test('a method that HTTP does not know, and CONNECT, get an answer', async () => {
    const { url } = await theServer()
    for (const line of [
      'FOO /health',
      'get /health',
      'CONNECT example.test:443',
      'CONNECT /health',
    ]) {
      const answer = await ask(url, line)
      assert.ok(answer.status === 400 || answer.status === 405, line)
      assertError(answer, `${answer.status} invalid request body`, line)
    }
  })

  test('a client that asks for a tunnel cannot hold on to the connection', async (t) => {
    const server = await startServer(t)
    const { hostname, port } = new URL(server.url)
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    t.after(() => socket.destroy())
    socket.on('error', () => undefined)
    socket.write('CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\nhello')
    const answer = await new Promise<string>((resolve) => {
      socket.once('data', (part) => {
        socket.write('more')
        resolve(part.toString('latin1'))
      })
    })
    assert.match(answer, /^HTTP\/1\.1 400 /)
    await server.stop()
  })

  test('both descriptions are OpenAPI 3.1.0, version 0.1.0; openapi.json is small enough for an agent, and links the whole', async (t) => {
    const { url } = await startServer(t, { MAYFLY_GATE: 'on' })
    for (const path of ['/openapi.json', '/openapi-all.json']) {
      const answer = await fetch(url + path)
      assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
      const text = await answer.text()
      const document = JSON.parse(text) as Document
      assert.equal(document.openapi, '3.1.0')
      assert.equal(document.info.version, '0.1.0')
      assert.equal(text, JSON.stringify(document), 'without spaces')
      if (path !== '/openapi.json') continue
      assert.ok(Buffer.byteLength(text) < 80 * 1024)
      assert.equal(document.externalDocs?.url, `${url}/openapi-all.json`)
    }
  })

  test('openapi.json has the operations of the interface and the purchases; openapi-all.json has the rest, too, each in words', async (t) => {
    const server = await startServer(t, { MAYFLY_GATE: 'on' })
    const main = await openapi(server, '/openapi.json')
    const whole = await openapi(server, '/openapi-all.json')
    const described = Object.entries(main.paths).map(([path, operations]) => [
      path,
      Object.keys(operations).sort().join(),
    ])
    assert.deepEqual(Object.fromEntries(described), {
      '/health': 'get,head',
      '/ready': 'get,head',
      '/api/buy/catch/{planId}': 'get,head,post',
      '/api/buy/pulse/{planId}': 'get,head,post',
      '/api/buy/whisper/{planId}': 'post',
      '/api/catalog': 'get',
      '/api/payments/catch': 'post',
      '/api/payments/{orderId}': 'get',
      '/c/{publicId}': 'delete,get,head,options,patch,post,put',
      '/api/catch/{publicId}': 'delete,get',
      '/api/catch/{publicId}/events': 'get',
      '/api/catch/{publicId}/events/{eventId}': 'delete,get',
      '/api/payments/pulse': 'post',
      '/api/payments/whisper': 'post',
      '/w/{publicId}': 'get',
      '/p/{publicId}': 'post',
      '/api/pulse/{publicId}': 'delete,get,patch',
      '/api/pulse/public/{publicStatusId}': 'get',
      '/simulator/pay': 'post',
    })
    for (const [path, operations] of Object.entries(whole.paths)) {
      for (const [method, { summary, responses }] of Object.entries(operations)) {
        assert.ok(summary, `${method} ${path}`)
        assert.ok(Object.keys(responses).length > 0, `${method} ${path}`)
        for (const { description } of Object.values(responses)) {
          assert.ok(description && description !== 'Default Response', `${method} ${path}`)
        }
      }
    }
  })
})

/** Receipts, challenges and pages are dated by it. */
test("every answer's Date is the service's clock, of the moment in which it is sent", async (t) => {
  const server = await startServer(t)
  const { publicId, ownerToken } = await aMonitor(server)
  const authorization = `Bearer ${ownerToken}`
  server.clock.jump(3 * 60 * 60_000)
  const stop = new AbortController()
  t.after(() => stop.abort())
  for (const [path, init] of [
    ['/health', {}],
    ['/', {}],
    ['/nothing/here', {}],
    ['/health', { method: 'DELETE' }],
    ['/c/catch_0000000000000000000000', { method: 'POST', body: 'x' }],
    [`/api/pulse/${publicId}/stream`, { headers: { authorization } }],
  ] as const) {
    // Until it is asked, the service has not seen that the machine's clock was set.
    const before = Math.max(server.now(), server.clock.now() - SECOND)
    const answer = await fetch(server.url + path, { ...init, signal: stop.signal })
    const date = Date.parse(answer.headers.get('date') ?? '')
    // It says the second, which may have begun before the request.
    assert.ok(date > before - SECOND && date <= server.now(), `${path}: ${date - before} ms`)
  }
})
