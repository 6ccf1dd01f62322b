import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { type TSchema, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import type { CatchCapability } from '../../src/client/index.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** Short enough to wait for, long enough for a purchase on a busy machine. */
const TIMEOUTS = { timeouts: { requestMs: 1_500, headersMs: 1_000, checkEveryMs: 50 } }
const ID = 'catch_0000000000000000000000'
const EVENT = '01890000-0000-7000-8000-000000000001'

const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'QUERY',
  'M-SEARCH',
]
const ROUTES: [path: string, allow: string][] = [
  ['/health', 'GET, HEAD'],
  ['/openapi.json', 'GET'],
  ['/api/catalog', 'GET'],
  // A poll of an order of this name is found to be none; the path takes it all the same.
  ['/api/payments/catch', 'GET, POST'],
  ['/api/payments/order_0000000000000000000000', 'GET'],
  [`/api/catch/${ID}`, 'DELETE, GET'],
  [`/api/catch/${ID}/events`, 'GET'],
  [`/api/catch/${ID}/events/${EVENT}`, 'DELETE, GET'],
  [`/api/catch/${ID}/events/${EVENT}/body`, 'GET'],
  [`/api/catch/${ID}/stream`, 'GET'],
  ['/api/payments/pulse', 'GET, POST'],
  ['/api/payments/whisper', 'GET, POST'],
  [`/w/${ID}`, 'GET'],
  [`/p/${ID}`, 'POST'],
  [`/api/pulse/${ID}`, 'DELETE, GET, PATCH'],
  [`/api/pulse/${ID}/stream`, 'GET'],
  ['/api/pulse/public/pulse_status_0000000000000000000000', 'GET'],
  ['/api/pulse/public/pulse_status_0000000000000000000000/badge.svg', 'GET'],
  ['/simulator/pay', 'POST'],
  [`/c/${ID}`, 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT'],
  [`/c/${ID}/sub/path`, 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT'],
]

test('health says that the service is there, to GET and to HEAD', async (t) => {
  const { url } = await startServer(t)
  const answer = await fetch(`${url}/health`)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  assert.equal(await answer.text(), '{"service":"mayfly","status":"ok"}')
  const head = await fetch(`${url}/health`, { method: 'HEAD' })
  assert.deepEqual([head.status, await head.text()], [200, ''])
})

test('an unknown path is 404, whatever is asked of it and sent along', async (t) => {
  const { url } = await startServer(t)
  const paths = [
    '/',
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
    '*',
  ]
  const json = 'Content-Type: application/json\r\nContent-Length: 1\r\n'
  const odd = 'Content-Type: nonsense\r\nContent-Length: 1\r\n'
  for (const path of paths) {
    for (const [method, headers, body] of [
      ['GET', '', ''],
      ['POST', json, '{'],
      ['POST', odd, 'x'],
      ['PUT', `Content-Length: 100000\r\n${'Content-Type: application/json\r\n'}`, 'x'.repeat(1e5)],
      ['DELETE', '', ''],
      ['QUERY', '', ''],
      ['PROPFIND', '', ''],
    ]) {
      const answer = await ask(url, `${method} ${path}`, headers, body)
      assertError(answer, 404, 'not found', `${method} ${path}`)
    }
  }
})

test('each path takes its own methods; any other is 405 and is told which', async (t) => {
  const { url } = await startServer(t)
  for (const [path, allow] of ROUTES) {
    const taken = allow.split(', ')
    for (const method of METHODS) {
      for (const [headers, body] of [
        ['', ''],
        ['Content-Type: application/json\r\nContent-Length: 1\r\n', '{'],
      ]) {
        const answer = await ask(url, `${method} ${path}`, headers, body)
        const note = `${method} ${path}`
        if (taken.includes(method)) {
          assert.notEqual(answer.status, 405, note)
          assert.ok(answer.status < 500, note)
          continue
        }
        assert.equal(answer.headers.get('allow'), allow, note)
        if (method === 'HEAD') assert.deepEqual([answer.status, answer.body], [405, ''], note)
        else assertError(answer, 405, 'method not allowed', note)
      }
    }
  }
})

test('a method that HTTP does not know, and CONNECT, get an answer', async (t) => {
  const { url } = await startServer(t)
  for (const line of [
    'FOO /health',
    'get /health',
    'CONNECT example.test:443',
    'CONNECT /health',
  ]) {
    const answer = await ask(url, line)
    assert.ok(answer.status === 400 || answer.status === 405, line)
    assertError(answer, answer.status, 'invalid request body', line)
  }
})

test('who asks for a tunnel cannot hold on to the connection', async (t) => {
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

test('a preflight is answered for any page, and OPTIONS without one is not', async (t) => {
  const { url } = await startServer(t)
  const preflight =
    'Origin: https://a.test\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,idempotency-key\r\n'
  for (const path of ['/api/payments/catch', `/api/catch/${ID}`, `/c/${ID}`, '/api/whatever']) {
    const answer = await ask(url, `OPTIONS ${path}`, preflight)
    assert.deepEqual([answer.status, answer.body], [204, ''], path)
    assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    assert.equal(
      answer.headers.get('access-control-allow-headers'),
      'authorization,idempotency-key',
    )
  }
  for (const path of ['/health', '/simulator/pay', '/openapi.json']) {
    assertError(await ask(url, `OPTIONS ${path}`, preflight), 405, 'method not allowed', path)
  }
})

test('a preflight cannot put a header of its own into the answer', async (t) => {
  const { url } = await startServer(t)
  for (const asked of ['a: b', '(x)', 'é', 'x'.repeat(3_000)]) {
    const { headers } = await ask(
      url,
      'OPTIONS /api/catalog',
      `Origin: https://a.test\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: ${asked}\r\n`,
    )
    assert.equal(
      headers.get('access-control-allow-headers'),
      'Authorization, Content-Type, Idempotency-Key',
    )
  }
})

test('every page may read the API, and only the API', async (t) => {
  const { url } = await startServer(t)
  for (const [path, isOpen] of [
    ['/api/catalog', true],
    ['/api/nowhere', true],
    ['/api/%zz', true],
    [`/c/${ID}`, true],
    ['http://mayfly.test/api/catalog', true],
    ['/openapi.json', true],
    ['/health', false],
    ['/simulator/pay', false],
    ['/nowhere', false],
  ] as const) {
    const { headers } = await ask(url, `GET ${path}`)
    assert.equal(headers.get('access-control-allow-origin'), isOpen ? '*' : null, path)
  }
})

test('percent garbage in a path is a path that is not there', async (t) => {
  const { url } = await startServer(t)
  for (const path of [
    '/%',
    '/%zz',
    '/api/%zz',
    '/api/catch/%zz',
    '/api/catch/%zz/events',
    '/api/payments/%c3%28',
    '/api/payments/%',
    `/api/catch/${ID}/events/%ff`,
  ]) {
    assertError(await ask(url, `GET ${path}`), 404, 'not found', path)
  }
})

test('headers up to 32 KiB are read, and more are refused', async (t) => {
  const { url } = await startServer(t)
  const header = (bytes: number): string => `X-Long: ${'x'.repeat(bytes)}\r\n`
  assert.equal((await ask(url, 'GET /health', header(31 * 1024))).status, 200)
  assertError(await ask(url, 'GET /health', header(33 * 1024)), 431, 'request too large')
  assertError(await ask(url, `GET /${'x'.repeat(33 * 1024)}`), 431, 'request too large')
  const many = 'X-Short: x\r\n'.repeat(5_000)
  assertError(await ask(url, 'GET /health', many), 431, 'request too large')
})

test('what is no HTTP is refused in JSON', async (t) => {
  const { url } = await startServer(t)
  for (const bytes of [
    'nonsense\r\n\r\n',
    '\u0000\u0001\u0002\r\n\r\n',
    'GET\r\n\r\n',
    'GET /health HTTP/9.9\r\nHost: x\r\n\r\n',
    'GET /health HTTPS/1.1\r\nHost: x\r\n\r\n',
    'GET /he alth HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost x\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nX : y\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nX: a\r\n folded\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nX: \u0000\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\u0016\u0003\u0001\u0002\u0000\u0001\r\n\r\n',
  ]) {
    assertError(await exchange(url, bytes), 400, 'invalid request body', JSON.stringify(bytes))
  }
})

test('a request of HTTP/1.1 names its host; one of HTTP/1.0 need not', async (t) => {
  const { url } = await startServer(t)
  const nameless = await exchange(url, 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n')
  assertError(nameless, 400, 'invalid request body')
  assert.equal((await exchange(url, 'GET /health HTTP/1.0\r\n\r\n')).status, 200)
})

test('an expectation or an upgrade that nobody here knows is not in the way', async (t) => {
  const { url } = await startServer(t)
  assert.equal((await ask(url, 'GET /health', 'Expect: the-unexpected\r\n')).status, 200)
  const upgrade =
    'GET /health HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: upgrade, close\r\n\r\n'
  assert.equal((await exchange(url, upgrade)).status, 200)
})

test('a sender that asks before it sends is told to go on', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  let answer = ''
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.setEncoding('latin1')
  socket.on('data', (part) => {
    answer += part
    if (answer === 'HTTP/1.1 100 Continue\r\n\r\n') socket.write('hello')
  })
  socket.write(
    `POST /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n`,
  )
  await closed
  assert.match(answer, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 204 /)
  const [event] = await Array.fromAsync(server.mayfly.catch(inbox).events())
  assert.equal(event?.body, 'hello')
})

test('a connection outlives a refusal, and an unread body is never the next request', async (t) => {
  const { url } = await startServer(t)
  const hidden = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'
  const withBody = `Host: x\r\nContent-Length: ${hidden.length}\r\n`
  const key = `Idempotency-Key: ${randomUUID()}\r\n`
  const json = 'Content-Type: application/json\r\n'
  for (const [line, headers, status] of [
    ['POST /api/payments/catch', `${withBody}${key}${json}`, 400],
    ['POST /api/payments/catch', `${withBody}${json}`, 400],
    ['POST /api/payments/catch', withBody, 400],
    ['POST /nowhere', withBody, 404],
    ['POST /nowhere', `${withBody}${json}`, 404],
    ['GET /api/catalog', withBody, 200],
    ['PUT /api/catalog', withBody, 405],
    [`DELETE /api/catch/${ID}`, withBody, 401],
    [`POST /c/${ID}`, withBody, 401],
    ['OPTIONS /api/catalog', `${withBody}Origin: x\r\nAccess-Control-Request-Method: GET\r\n`, 204],
    ['GET /%zz', withBody, 404],
  ] as const) {
    const answers = await exchangeAll(
      url,
      `${line} HTTP/1.1\r\n${headers}\r\n${hidden}GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    )
    assert.deepEqual(answers, [status, 200], line)
  }
})

test('a body that stops half-way is timed out, and nothing of it is kept', async (t) => {
  const server = await startServer(t, {}, TIMEOUTS)
  const inbox = await anInbox(server)
  const half = 'Host: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n'
  const key = `Idempotency-Key: ${randomUUID()}\r\n`
  const chunked =
    'Host: x\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n5\r\n{"pl'
  const answers = await Promise.all([
    exchange(server.url, `POST /c/${inbox.publicId} HTTP/1.1\r\n${half}\r\n{"half":`),
    exchange(server.url, `POST /c/${inbox.publicId} HTTP/1.1\r\n${chunked}`),
    exchange(server.url, `GET /c/${inbox.publicId} HTTP/1.1\r\n${half}\r\n{"half":`),
    exchange(server.url, `POST /api/payments/catch HTTP/1.1\r\n${key}${half}\r\n{"planId":`),
    exchange(server.url, `POST /api/payments/catch HTTP/1.1\r\n${key}${chunked}`),
    exchange(server.url, `POST /simulator/pay HTTP/1.1\r\n${half}\r\n{"bolt11":`),
  ])
  for (const answer of answers) assertError(answer, 408, 'request timeout')
  assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 0)
  assert.equal(countOrders(server), 1, 'the one that bought the inbox')
  assert.deepEqual(errorsLogged(server), [])
})

test('slow headers are timed out', async (t) => {
  const server = await startServer(t, {}, TIMEOUTS)
  const answers = await Promise.all([
    exchange(server.url, 'GET /health HTTP/1.1\r\nHost: x\r\n'),
    exchange(server.url, 'GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: '),
    exchange(server.url, 'GE'),
    exchange(server.url, ''),
  ])
  for (const answer of answers) assertError(answer, 408, 'request timeout')
})

test('the rest of a body that was timed out is not stored after all', async (t) => {
  const server = await startServer(t, {}, TIMEOUTS)
  const inbox = await anInbox(server)
  const { hostname, port } = new URL(server.url)
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
  const closed = new Promise((resolve) => socket.on('close', resolve))
  let answer = ''
  socket.setEncoding('latin1')
  socket.on('data', (part) => {
    answer += part
  })
  socket.on('error', () => undefined)
  socket.on('end', () => socket.end('rest'))
  socket.write(`POST /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nhalf`)
  await closed
  assert.match(answer, /^HTTP\/1\.1 408 /)
  await server.restart()
  assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 0)
})

test('a peer that goes away in the middle leaves nothing behind', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const { hostname, port } = new URL(server.url)
  await Promise.all(
    Array.from({ length: 20 }, () => {
      const socket = connect(Number(port), hostname)
      return new Promise<void>((resolve) => {
        socket.on('close', () => resolve())
        socket.write(
          `POST /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf`,
          () => socket.destroy(),
        )
      })
    }),
  )
  assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 0)
  assert.deepEqual(errorsLogged(server), [])
})

test('our own bug is a 500 with a request id that the log knows, and nothing else has one', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const store = new DatabaseSync(server.file)
  store.exec('alter table catch_inbox rename to lost')
  const bearer = `Authorization: Bearer ${inbox.ownerToken}\r\n`
  const unremembered = `/c/${ID}`
  for (const [line, headers, route] of [
    [`GET /api/catch/${inbox.publicId}`, bearer, '/api/catch/:publicId'],
    [`POST ${unremembered}`, 'Content-Length: 0\r\n', '/c/:publicId'],
  ] as const) {
    const answer = await ask(server.url, line, headers)
    assertError(answer, 500, 'internal error', line)
    const requestId = answer.headers.get('x-request-id') ?? ''
    assert.match(requestId, /^[0-9a-f-]{36}$/)
    const [entry] = errorsLogged(server).slice(-1)
    assert.equal(entry?.event, 'http.failed')
    assert.equal(entry?.requestId, requestId)
    assert.equal(entry?.route, route)
  }
  store.exec('alter table lost rename to catch_inbox')
  store.close()
  for (const line of ['GET /health', 'GET /nowhere', 'PUT /health', `GET /api/catch/${ID}`]) {
    assert.equal((await ask(server.url, line)).headers.get('x-request-id'), null, line)
  }
  assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
})

test('the log has route patterns, and no token, key, preimage, id or path', async (t) => {
  const server = await startServer(t, { MAYFLY_LOG_LEVEL: 'debug' })
  const { url } = server
  const key = randomUUID()
  const order = { path: '/api/payments/catch', key, body: '{"planId":"spark"}' }
  const buy = (): Promise<Response> =>
    fetch(url + order.path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: order.body,
    })
  const quote = (await (await buy()).json()) as Record<'orderId' | 'bolt11' | 'paymentHash', string>
  const settlement = settled(server)
  const preimage = await server.pay(quote.bolt11)
  await settlement
  await fetch(`${url}/api/payments/${quote.orderId}`, {
    headers: { 'idempotency-key': 'wrong-key' },
  })
  await fetch(`${url}/api/payments/${quote.orderId}`, { headers: { 'sec-purpose': 'prefetch' } })
  const { resource } = (await (await buy()).json()) as { resource: CatchCapability }
  const { publicId, ownerToken, ingestToken } = resource
  await fetch(`${url}/c/${publicId}/secret-path?secret-query`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ingestToken}`, 'x-header': 'secret-header' },
    body: 'secret-body',
  })
  const owner = server.mayfly.catch(resource)
  const [event] = (await owner.page({ q: 'secret-search' })).events.concat(
    (await owner.page()).events,
  )
  await owner.deleteEvent(event?.id ?? '')
  await fetch(`${url}/api/catch/${publicId}`, {
    headers: { authorization: 'Bearer secret-bearer' },
  })
  await fetch(`${url}/secret-nowhere/${ownerToken}?${ingestToken}`)
  await fetch(`${url}/secret-nowhere/%zz${ownerToken}`)
  await ask(url, 'NONSENSE /secret-nowhere')
  const store = new DatabaseSync(server.file)
  store.exec('alter table catch_inbox rename to lost')
  await fetch(`${url}/api/catch/${publicId}?secret-query`, {
    headers: { authorization: `Bearer ${ownerToken}` },
  })
  store.exec('alter table lost rename to catch_inbox')
  store.close()
  await owner.destroy()
  await server.stop()

  const log = server.logged.join('')
  const routes = server.logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === 'http.request')
    .map(({ method, route, status }) => `${method} ${route} ${status}`)
  for (const expected of [
    'POST /api/payments/catch 402',
    'POST /simulator/pay 200',
    'GET /api/payments/:orderId 404',
    'GET /api/payments/:orderId 402',
    'POST /api/payments/catch 200',
    'POST /c/:publicId 204',
    'GET /api/catch/:publicId/events 200',
    'DELETE /api/catch/:publicId/events/:eventId 204',
    'GET /api/catch/:publicId 401',
    'GET none 404',
    'GET /api/catch/:publicId 500',
    'DELETE /api/catch/:publicId 204',
  ]) {
    assert.ok(routes.includes(expected), expected)
  }
  for (const secret of [
    key,
    'wrong-key',
    preimage,
    quote.bolt11,
    ownerToken,
    ingestToken,
    publicId,
    event?.id ?? '',
    'secret-',
  ]) {
    assert.ok(!log.includes(secret), secret)
  }
  // An order is named in the lines about it, so that the operator can follow its money.
  for (const line of server.logged.filter((line) => line.includes(quote.orderId))) {
    assert.match(line, /"event":"order\.(?:quoted|settled|delivered)"/)
  }
})

test('the description is OpenAPI 3.1.0, version 0.1.0, and small enough for an agent', async (t) => {
  const { url } = await startServer(t)
  const answer = await fetch(`${url}/openapi.json`)
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
  const text = await answer.text()
  const document = JSON.parse(text) as Document
  assert.equal(document.openapi, '3.1.0')
  assert.equal(document.info.version, '0.1.0')
  assert.ok(text.length < 64 * 1024)
  assert.equal(text, JSON.stringify(document), 'without spaces')
})

test('every route and method is described, each with its answers', async (t) => {
  const { paths } = await openapi(await startServer(t))
  const described = Object.entries(paths).map(([path, operations]) => [
    path,
    Object.keys(operations).sort().join(),
  ])
  assert.deepEqual(Object.fromEntries(described), {
    '/health': 'get,head',
    '/api/catalog': 'get',
    '/api/payments/catch': 'post',
    '/api/payments/{orderId}': 'get',
    '/c/{publicId}': 'delete,get,head,options,patch,post,put',
    '/api/catch/{publicId}': 'delete,get',
    '/api/catch/{publicId}/events': 'get',
    '/api/catch/{publicId}/events/{eventId}': 'delete,get',
    '/api/catch/{publicId}/events/{eventId}/body': 'get',
    '/api/catch/{publicId}/stream': 'get',
    '/api/payments/pulse': 'post',
    '/api/payments/whisper': 'post',
    '/w/{publicId}': 'get',
    '/p/{publicId}': 'post',
    '/api/pulse/{publicId}': 'delete,get,patch',
    '/api/pulse/{publicId}/stream': 'get',
    '/api/pulse/public/{publicStatusId}': 'get',
    '/api/pulse/public/{publicStatusId}/badge.svg': 'get',
    '/simulator/pay': 'post',
  })
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { summary, responses }] of Object.entries(operations)) {
      assert.ok(summary, `${method} ${path}`)
      assert.ok(Object.keys(responses).length > 0, `${method} ${path}`)
    }
  }
})

test('every answer is one that the description lists, and has its shape', async (t) => {
  const server = await startServer(t)
  const check = await describedAnswers(server)
  const key = randomUUID()
  const json = { 'content-type': 'application/json' }
  const buy = (body: unknown, headers: Record<string, string> = { 'idempotency-key': key }) =>
    check('POST', '/api/payments/catch', { headers: { ...json, ...headers }, body })
  await check('GET', '/health')
  await check('HEAD', '/health')
  await check('GET', '/api/catalog')
  await buy({ planId: 'mega' })
  await buy({ planId: 'spark' }, {})
  const quote = (await buy({ planId: 'spark' })) as { orderId: string; bolt11: string }
  await check('GET', `/api/payments/${quote.orderId}`)
  await check('GET', `/api/payments/${quote.orderId}`, { headers: { 'idempotency-key': 'x' } })
  await check('GET', '/api/payments/order_0')
  const pay = (bolt11: unknown) =>
    check('POST', '/simulator/pay', { headers: json, body: { bolt11 } })
  const settlement = settled(server)
  for (const bolt11 of ['lnbcrt1', 1, quote.bolt11, quote.bolt11]) await pay(bolt11)
  await settlement
  const delivered = await check('GET', `/api/payments/${quote.orderId}`)
  await check('GET', `/api/payments/${quote.orderId}`)
  await buy({ planId: 'spark' })
  const { publicId, ownerToken, ingestToken } = (delivered as { resource: CatchCapability })
    .resource
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    await check(method, `/c/${publicId}`)
    await check(method, `/c/${ID}`)
  }
  await check('POST', `/c/${publicId}`, { body: 'x'.repeat(70_000) })
  await check('POST', `/c/${publicId}`, {
    headers: { authorization: `Bearer ${ingestToken}`, 'content-type': 'text/plain' },
    body: 'binary \u0000',
  })
  const owner = { headers: { authorization: `Bearer ${ownerToken}` } }
  const page = await check('GET', `/api/catch/${publicId}/events?limit=50`, owner)
  await check('GET', `/api/catch/${publicId}/events?limit=0`, owner)
  await check('GET', `/api/catch/${publicId}/events`)
  const [event] = (page as { events: { id: string }[] }).events
  await check('DELETE', `/api/catch/${publicId}/events/${event?.id}`, owner)
  await check('DELETE', `/api/catch/${publicId}/events/${event?.id}`, owner)
  await check('DELETE', `/api/catch/${publicId}/events/${event?.id}`)
  await check('GET', `/api/catch/${publicId}`, owner)
  await check('GET', `/api/catch/${publicId}`)
  await check('GET', `/api/catch/${ID}`, owner)
  await check('DELETE', `/api/catch/${publicId}`)
  await check('DELETE', `/api/catch/${publicId}`, owner)
  await check('DELETE', `/api/catch/${publicId}`, owner)
  await buy({ planId: 'spark' })
})

type Operation = {
  summary?: string
  responses: Record<string, { content?: { 'application/json'?: { schema: TSchema } } }>
}

type Document = {
  openapi: string
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, unknown> }
}

async function openapi({ url }: TestServer): Promise<Document> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as Document
  return resolved(document, document) as Document
}

/** With each `$ref` replaced by what it refers to. */
function resolved(node: unknown, document: Document): unknown {
  if (Array.isArray(node)) return node.map((item) => resolved(item, document))
  if (typeof node !== 'object' || node === null) return node
  if ('$ref' in node) {
    const name = String(node.$ref).replace('#/components/schemas/', '')
    const schema = document.components.schemas[name]
    assert.ok(schema, `${name} is named and not there`)
    return resolved(schema, document)
  }
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, resolved(value, document)]),
  )
}

type Request = { headers?: Record<string, string>; body?: unknown }

/** Asks, and holds the answer to the document; the parsed answer. */
async function describedAnswers(
  server: TestServer,
): Promise<(method: string, target: string, request?: Request) => Promise<unknown>> {
  const { paths } = await openapi(server)
  const routes = Object.entries(paths)
    .map(([path, operations]) => ({
      path,
      operations,
      pattern: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/?]+')}$`),
    }))
    .sort((a, b) => Number(a.path.includes('{')) - Number(b.path.includes('{')))
  return async (method, target, { headers = {}, body } = {}) => {
    const answer = await fetch(server.url + target, {
      method,
      headers,
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const what = `${method} ${target} ${answer.status}`
    const path = target.split('?')[0] ?? ''
    const route = routes.find(({ pattern }) => pattern.test(path))
    const response = route?.operations[method.toLowerCase()]?.responses[answer.status]
    assert.ok(response, `${what} is not described`)
    const text = await answer.text()
    const value: unknown = text === '' ? null : JSON.parse(text)
    const schema = response.content?.['application/json']?.schema
    if (method === 'HEAD' || answer.status === 204) assert.equal(text, '', what)
    else assert.ok(Compile(schema ?? Type.Never()).Check(value), `${what}: ${text}`)
    return value
  }
}

function anInbox({ mayfly, pay }: TestServer): Promise<CatchCapability> {
  return mayfly.buyCatch({ planId: 'spark', onInvoice: ({ bolt11 }) => pay(bolt11) })
}

/** Resolves when the server says that it has settled an order. */
function settled({ logged }: TestServer): Promise<void> {
  return new Promise((resolve) => {
    const push = logged.push.bind(logged)
    logged.push = (...lines) => {
      if (lines.some((line) => JSON.parse(line).event === 'order.settled')) resolve()
      return push(...lines)
    }
  })
}

type Exchanged = { status: number; headers: Headers; body: string }

/** One request and its answer; `line` is method and target. */
function ask(url: string, line: string, headers = '', body = ''): Promise<Exchanged> {
  return exchange(url, `${line} HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n${body}`)
}

/** Sends bytes as they are and reads until the server closes the connection. */
async function exchange(url: string, text: string): Promise<Exchanged> {
  const answer = await send(url, text)
  const end = answer.indexOf('\r\n\r\n')
  const [first = '', ...lines] = answer.slice(0, end).split('\r\n')
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    }),
  )
  return { status: Number(first.split(' ')[1]), headers, body: answer.slice(end + 4) }
}

/** The status of each answer that comes back on one connection. */
async function exchangeAll(url: string, text: string): Promise<number[]> {
  const answer = await send(url, text)
  return [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}

function send(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(Number(port), hostname, () => socket.write(text, 'latin1'))
    socket.setEncoding('latin1')
    socket.on('data', (part) => {
      answer += part
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}

/** A JSON body of one member, never cached, never sniffed. */
function assertError(answer: Exchanged, status: number, phrase: string, note = phrase): void {
  assert.equal(answer.status, status, note)
  assert.equal(answer.body, JSON.stringify({ error: phrase }), note)
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8', note)
  assert.equal(answer.headers.get('cache-control'), 'no-store', note)
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff', note)
}

function errorsLogged({ logged }: TestServer): Record<string, unknown>[] {
  return logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ level }) => Number(level) >= 50)
}

function countOrders({ file }: TestServer): number {
  const store = new DatabaseSync(file, { readOnly: true })
  try {
    return store.prepare('select order_id from purchase_order').all().length
  } finally {
    store.close()
  }
}
