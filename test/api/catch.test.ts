import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { resumeInbox, suspendInbox } from '../../src/catch/store.ts'
import type { CatchCapability, CatchEvent, EventPage } from '../../src/client/index.ts'
import type { Statement } from '../../src/db/db.ts'
import { openSqlite } from '../../src/db/sqlite.ts'
import { type TokenKind, tokenOf } from '../../src/lib/ids.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { startServer, type TestServer } from '../support/server.ts'

const DAY = 24 * 60 * 60 * 1000
/** The server looks for what is over this often. */
const PURGE = 30_000
const UNAVAILABLE = { status: 401, text: '{"error":"catch unavailable"}' }
const UNAUTHORIZED = { status: 401, text: '{"error":"unauthorized"}' }
const NOT_FOUND = { status: 404, text: '{"error":"not found"}' }
const INVALID_QUERY = { status: 400, text: '{"error":"invalid query"}' }

// Ingest

test('an event is exactly what was sent, with what the server knows of it', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const before = server.clock.now()
  const body = '{"amount": 1.0, "note": "grüße"}\n'
  const answer = await exchange(
    server.url,
    `POST /c/${inbox.publicId}/hooks/pay?id=1&id=2 HTTP/1.1\r\nHost: example.test\r\nContent-Type: application/json; charset=utf-8\r\nX-Signature: sha256=abc\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`,
    body,
  )
  assert.equal(answer.status, 204)
  assert.equal(answer.body, '')
  const { events, nextCursor, latestSequence } = await server.mayfly.catch(inbox).page()
  const [event] = events
  assert.ok(event)
  assert.match(event.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.match(event.receivedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.ok(Date.parse(event.receivedAt) >= before)
  assert.deepEqual([nextCursor, latestSequence], [null, 1])
  assert.deepEqual(events, [
    {
      id: event.id,
      sequence: 1,
      receivedAt: event.receivedAt,
      access: 'public',
      method: 'POST',
      path: '/hooks/pay',
      query: 'id=1&id=2',
      headers: [
        { name: 'Host', value: 'example.test' },
        { name: 'Content-Type', value: 'application/json; charset=utf-8' },
        { name: 'X-Signature', value: 'sha256=abc' },
        { name: 'Content-Length', value: String(Buffer.byteLength(body)) },
        { name: 'Connection', value: 'close' },
      ],
      contentType: 'application/json; charset=utf-8',
      body,
      bodyEncoding: 'utf8',
      bodyBytes: Buffer.byteLength(body),
      bodySha256: sha256(body),
      sourceIp: '127.0.0.1',
      ipLocation: null,
    },
  ])
})

test('an inbox takes every method that it lists, HEAD and OPTIONS too', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
  for (const method of methods) {
    assert.deepEqual(await send(server, inbox, { method }), { status: 204, text: '' }, method)
  }
  const events = await eventsOf(server, inbox)
  assert.deepEqual(
    events.map(({ method }) => method),
    methods.toReversed(),
  )
  assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 7)
})

test('any method may have a body', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
  for (const method of methods) {
    const answer = await exchange(
      server.url,
      `${method} /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\n`,
      'body',
    )
    assert.equal(answer.status, 204, method)
  }
  const events = await eventsOf(server, inbox)
  assert.deepEqual(
    events.map(({ method, body }) => [method, body]),
    methods.toReversed().map((method) => [method, 'body']),
  )
})

test('a body comes back to the byte, whatever it is made of', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const bodies: [note: string, body: Buffer<ArrayBuffer>, encoding: 'utf8' | 'base64'][] = [
    ['nothing', Buffer.alloc(0), 'utf8'],
    ['every byte', Buffer.from(Array.from({ length: 256 }, (_, i) => i)), 'base64'],
    ['noise', Buffer.from(randomBytes(65_536)), 'base64'],
    ['zeros, which are text', Buffer.alloc(1_000), 'utf8'],
    ['a byte order mark', Buffer.from('\ufeffx'), 'utf8'],
    ['line ends of both kinds', Buffer.from('a\r\nb\nc\r'), 'utf8'],
    ['broken JSON', Buffer.from('{"a":'), 'utf8'],
    ['an emoji', Buffer.from('⚡'), 'utf8'],
    ['half an emoji', Buffer.from('⚡').subarray(0, 2), 'base64'],
    ['a lone surrogate', Buffer.from([0xed, 0xa0, 0x80]), 'base64'],
  ]
  for (const [note, body, encoding] of bodies) {
    assert.equal((await send(server, inbox, { method: 'POST', body })).status, 204, note)
    const [event] = (await server.mayfly.catch(inbox).page({ limit: 1 })).events
    assert.ok(event, note)
    assert.deepEqual(Buffer.from(event.body, event.bodyEncoding), body, note)
    assert.equal(event.bodyEncoding, encoding, note)
    assert.equal(event.bodyBytes, body.length, note)
    assert.equal(event.bodySha256, sha256(body), note)
  }
})

test('a chunked body is stored without its chunks', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const answer = await exchange(
    server.url,
    `POST /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
    '3\r\nfoo\r\n3;ext=1\r\nbar\r\n0\r\nX-Trailer: 1\r\n\r\n',
  )
  assert.equal(answer.status, 204)
  const [event] = await eventsOf(server, inbox)
  assert.equal(event?.body, 'foobar')
  assert.equal(event?.bodySha256, sha256('foobar'))
})

test('a coded body is kept as it came', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const body = Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0xff])
  await send(server, inbox, { method: 'POST', body, headers: { 'content-encoding': 'gzip' } })
  const [event] = await eventsOf(server, inbox)
  assert.equal(event?.bodySha256, sha256(body))
})

test('headers stay in order, in their case and as often as they were sent', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const sent: [string, string][] = [
    ['hOsT', 'x'],
    ['X-B', '2'],
    ['x-a', '1'],
    ['X-B', '1'],
    ['X-Empty', ''],
    ['Cookie', 'a=1'],
    ['cookie', 'b=2'],
    ['Content-Type', 'text/plain'],
    ['CONTENT-TYPE', 'text/html'],
    ['__proto__', 'x'],
    ['constructor', 'y'],
    ['X-Latin', 'caf\u00e9'],
    ['X-Forwarded-For', '203.0.113.9'],
    ['X-Inner', 'a  b\tc'],
    ['Authorization', 'Bearer somebody-elses'],
    ['Connection', 'close'],
  ]
  const head = sent.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const answer = await exchange(server.url, `GET /c/${inbox.publicId} HTTP/1.1\r\n${head}\r\n`)
  assert.equal(answer.status, 204)
  const [event] = await eventsOf(server, inbox)
  assert.deepEqual(
    event?.headers.map(({ name, value }) => [name, value]),
    sent,
  )
  assert.equal(event?.contentType, 'text/plain')
})

test('hundreds of headers are kept, not dropped without a word', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const names = Array.from({ length: 2_500 }, (_, i) => `x-${i}`)
  const head = names.map((name) => `${name}: 1\r\n`).join('')
  const answer = await exchange(
    server.url,
    `GET /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${head}\r\n`,
  )
  assert.equal(answer.status, 204)
  const [event] = await eventsOf(server, inbox)
  assert.deepEqual(
    event?.headers.slice(2).map(({ name }) => name),
    names,
  )
})

test('no token of ours and no payment credential is kept among the headers', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const other = await anInbox(server)
  const kinds: TokenKind[] = [
    'catch_owner',
    'catch_ingest',
    'whisper_read',
    'pulse_owner',
    'pulse_ping',
    'gate_key',
  ]
  const tokens = kinds.map((kind) => tokenOf(kind, randomBytes(32)))
  const secrets = [
    `Bearer ${inbox.ingestToken}`,
    `Bearer ${inbox.ownerToken}`,
    `Bearer ${other.ingestToken}`,
    ...tokens.map((token) => `Bearer ${token}`),
    ...tokens,
    `session=${inbox.ownerToken}; path=/`,
    `"${inbox.ownerToken}"`,
    'Payment eyJjaGFsbGVuZ2UiOnt9fQ',
    'payment eyJjaGFsbGVuZ2UiOnt9fQ',
    'L402 AgELbWFjYXJvb24:0123456789abcdef',
    'LSAT AgELbWFjYXJvb24:0123456789abcdef',
    'l402  AgELbWFjYXJvb24:0123456789abcdef',
  ]
  const harmless = ['Bearer abc', 'Basic dXNlcjpwYXNz', typo(inbox.ownerToken), inbox.publicId]
  for (const name of ['Authorization', 'X-Api-Key']) {
    for (const secret of secrets) {
      await exchange(
        server.url,
        `GET /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\n${name}: ${secret}\r\nConnection: close\r\n\r\n`,
      )
      const [event] = (await server.mayfly.catch(inbox).page({ limit: 1 })).events
      assert.deepEqual(
        event?.headers,
        [
          { name: 'Host', value: 'x' },
          { name: 'Connection', value: 'close' },
        ],
        `${name}: ${secret}`,
      )
    }
    for (const value of name === 'X-Api-Key' ? [...harmless, 'Payment received'] : harmless) {
      await send(server, inbox, { headers: { [name]: value } })
      const [event] = (await server.mayfly.catch(inbox).page({ limit: 1 })).events
      assert.ok(
        event?.headers.some((header) => header.value === value),
        value,
      )
    }
  }
})

test('path and query are kept raw, as a sender may have signed them', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const cases: [sent: string, path: string, query: string][] = [
    ['', '', ''],
    ['/', '/', ''],
    ['//', '//', ''],
    ['/a', '/a', ''],
    ['/a/', '/a/', ''],
    ['//a//b', '//a//b', ''],
    ['/../../api/catalog', '/../../api/catalog', ''],
    ['/./x', '/./x', ''],
    ['/a%2Fb', '/a%2Fb', ''],
    ['/%zz', '/%zz', ''],
    ['/%', '/%', ''],
    ['/%c3%A4', '/%c3%A4', ''],
    ['/a;b=c', '/a;b=c', ''],
    ['?', '', ''],
    ['/?', '/', ''],
    ['?a=1', '', 'a=1'],
    ['?a=1&a=2&', '', 'a=1&a=2&'],
    ['?%zz=%', '', '%zz=%'],
    ['?a?b', '', 'a?b'],
    ['/a?/c/b', '/a', '/c/b'],
    ['?__proto__=1', '', '__proto__=1'],
    [`/${'x'.repeat(8_000)}`, `/${'x'.repeat(8_000)}`, ''],
  ]
  for (const [sent, path, query] of cases) {
    const answer = await get(server, `/c/${inbox.publicId}${sent}`)
    assert.equal(answer.status, 204, sent)
    const [event] = (await server.mayfly.catch(inbox).page({ limit: 1 })).events
    assert.deepEqual([event?.path, event?.query], [path, query], sent)
  }
})

test('the path begins where the inbox ends, however the address is written', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const escaped = `%63${inbox.publicId.slice(1).replace('_', '%5F')}`
  for (const address of [
    `http://mayfly.test/c/${inbox.publicId}`,
    `HTTP://mayfly.test:80/c/${inbox.publicId}`,
    `/c/${escaped}`,
    `http://mayfly.test/c/${escaped}`,
  ]) {
    assert.equal((await get(server, `${address}/hook%2F1?x=y`)).status, 204, address)
    const [event] = (await server.mayfly.catch(inbox).page({ limit: 1 })).events
    assert.deepEqual([event?.path, event?.query], ['/hook%2F1', 'x=y'], address)
  }
})

test('any content type is taken, one that is none included', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const types = [
    'application/octet-stream',
    'multipart/form-data; boundary=x',
    'nonsense',
    'a b/c;;;=',
    '/',
    '*/*',
    'text/plain; charset="',
    'application/json',
    '',
  ]
  for (const type of types) {
    const answer = await exchange(
      server.url,
      `POST /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n`,
      '{x',
    )
    assert.equal(answer.status, 204, type)
    const [event] = (await server.mayfly.catch(inbox).page({ limit: 1 })).events
    assert.deepEqual([event?.contentType, event?.body], [type, '{x'], type)
  }
})

test('a request with the ingest token is authenticated; with anything else it is public', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const other = await anInbox(server)
  const { ingestToken } = inbox
  const cases: [note: string, headers: string, access: CatchEvent['access']][] = [
    ['no token', '', 'public'],
    ['its token', `Authorization: Bearer ${ingestToken}\r\n`, 'authenticated'],
    ['the scheme in lower case', `authorization: bearer ${ingestToken}\r\n`, 'authenticated'],
    ['a wrong checksum', `Authorization: Bearer ${typo(ingestToken)}\r\n`, 'public'],
    ['the owner token', `Authorization: Bearer ${inbox.ownerToken}\r\n`, 'public'],
    ["another inbox's token", `Authorization: Bearer ${other.ingestToken}\r\n`, 'public'],
    [
      'a well-formed token of nobody',
      `Authorization: Bearer ${tokenOf('catch_ingest', randomBytes(32))}\r\n`,
      'public',
    ],
    ['no token after the scheme', 'Authorization: Bearer\r\n', 'public'],
    ['another scheme', `Authorization: Basic ${ingestToken}\r\n`, 'public'],
    ['the bare token', `Authorization: ${ingestToken}\r\n`, 'public'],
    ['something after the token', `Authorization: Bearer ${ingestToken} x\r\n`, 'public'],
    [
      'two tokens',
      `Authorization: Bearer ${ingestToken}\r\nAuthorization: Bearer ${ingestToken}\r\n`,
      'public',
    ],
    ['the token elsewhere', `X-Token: Bearer ${ingestToken}\r\n`, 'public'],
  ]
  for (const [note, headers, access] of cases) {
    const answer = await exchange(
      server.url,
      `GET /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n`,
    )
    assert.equal(answer.status, 204, note)
    const [event] = (await server.mayfly.catch(inbox).page({ limit: 1 })).events
    assert.equal(event?.access, access, note)
  }
})

test('a token in the query opens nothing', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  await get(server, `/c/${inbox.publicId}?access_token=${inbox.ingestToken}`)
  const [event] = await eventsOf(server, inbox)
  assert.equal(event?.access, 'public')
})

test('200 requests at once into room for 100 store exactly 100', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, i) => send(server, inbox, { method: 'POST', body: `${i}` })),
  )
  assert.equal(answers.filter(({ status }) => status === 204).length, 100)
  const refused = answers.filter(({ status }) => status !== 204)
  assert.deepEqual(
    refused,
    refused.map(() => UNAVAILABLE),
  )
  const events = await eventsOf(server, inbox)
  assert.deepEqual(
    events.map(({ sequence }) => sequence),
    Array.from({ length: 100 }, (_, i) => 100 - i),
  )
  const accepted = answers.flatMap(({ status }, i) => (status === 204 ? [`${i}`] : []))
  assert.deepEqual(events.map(({ body }) => body).sort(), accepted.sort())
  const status = await server.mayfly.catch(inbox).status()
  assert.deepEqual([status.status, status.acceptedRequestCount], ['exhausted', 100])
})

test('storage is exact to the byte, and an empty body still fits a full inbox', async (t) => {
  const server = await aSmallServer(t)
  const inbox = await anInbox(server)
  const post = async (bytes: number): Promise<number> =>
    (await send(server, inbox, { method: 'POST', body: 'x'.repeat(bytes) })).status
  assert.equal(await post(60), 204)
  assert.equal(await post(41), 401)
  assert.equal(await post(40), 204)
  assert.equal(await post(1), 401)
  assert.equal(await post(0), 204)
  const status = await server.mayfly.catch(inbox).status()
  assert.deepEqual(
    [status.status, status.storedBytes, status.acceptedRequestCount],
    ['active', 100, 3],
  )
})

test('20 bodies at once into room for 5 store exactly 5', async (t) => {
  const server = await aSmallServer(t)
  const inbox = await anInbox(server)
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => send(server, inbox, { method: 'POST', body: 'x'.repeat(20) })),
  )
  assert.equal(answers.filter(({ status }) => status === 204).length, 5)
  assert.equal((await server.mayfly.catch(inbox).status()).storedBytes, 100)
})

test('a body may have its limit in bytes and not one more, by length and in chunks', async (t) => {
  const server = await aSmallServer(t)
  const inbox = await anInbox(server)
  const target = `POST /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\n`
  const whole = (bytes: number): Promise<Exchanged> =>
    exchange(
      server.url,
      `${target}Content-Length: ${bytes}\r\nConnection: close\r\n\r\n`,
      'x'.repeat(bytes),
    )
  const chunked = (bytes: number): Promise<Exchanged> =>
    exchange(
      server.url,
      `${target}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
      `${'1\r\nx\r\n'.repeat(bytes)}0\r\n\r\n`,
    )
  const tooLarge = '{"error":"request too large"}'
  for (const ask of [whole, chunked]) {
    for (const bytes of [61, 1_000, 100_000]) {
      const refused = await ask(bytes)
      assert.deepEqual([refused.status, refused.body], [400, tooLarge], `${bytes}`)
    }
  }
  assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 0)
  assert.equal((await whole(60)).status, 204)
  const second = await anInbox(server)
  const other = `POST /c/${second.publicId} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`
  assert.equal(
    (await exchange(server.url, other, `3c\r\n${'x'.repeat(60)}\r\n0\r\n\r\n`)).status,
    204,
  )
})

test('a sender of megabytes too many still reads the refusal', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const body = 'x'.repeat(600_000)
  assert.deepEqual(await send(server, inbox, { method: 'POST', body }), {
    status: 400,
    text: '{"error":"request too large"}',
  })
})

test('exhaustion is final: deleting events brings no request back', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  await Promise.all(Array.from({ length: 100 }, () => send(server, inbox, {})))
  assert.deepEqual(await send(server, inbox, {}), UNAVAILABLE)
  const owner = server.mayfly.catch(inbox)
  for (const { id } of (await owner.page({ limit: 5 })).events) await owner.deleteEvent(id)
  assert.deepEqual(await send(server, inbox, {}), UNAVAILABLE)
  const status = await owner.status()
  assert.deepEqual([status.status, status.acceptedRequestCount], ['exhausted', 100])
})

test('unknown, malformed, suspended, exhausted, expired, destroyed: nobody can tell them apart', async (t) => {
  const server = await startServer(t)
  const inboxes = await Promise.all(Array.from({ length: 4 }, () => anInbox(server)))
  const [suspended, exhausted, destroyed, expired] = inboxes.map(({ publicId }) => publicId)
  for (const { publicId } of inboxes)
    assert.equal((await get(server, `/c/${publicId}`)).status, 204)
  await asOperator(server, suspendInbox(suspended ?? '', server.clock.now()))
  await Promise.all(Array.from({ length: 100 }, () => get(server, `/c/${exhausted}`)))
  await server.mayfly.catch(inboxes[2] as CatchCapability).destroy()

  const unknown = [
    'catch_0000000000000000000000',
    'catch',
    '',
    '%20',
    '__proto__',
    'x'.repeat(101),
    'x'.repeat(20_000),
  ]
  const answers: unknown[] = []
  for (const id of [...unknown, suspended, exhausted, destroyed]) {
    for (const path of ['', '/sub', '?q']) answers.push(await facelessly(server, `/c/${id}${path}`))
  }
  server.clock.advance(DAY)
  answers.push(
    await facelessly(server, `/c/${expired}`),
    await facelessly(server, `/c/${suspended}`),
  )
  const [first] = answers
  assert.deepEqual(first, {
    status: 401,
    body: '{"error":"catch unavailable"}',
    headers: [
      'x-content-type-options: nosniff',
      'cache-control: no-store',
      'access-control-allow-origin: *',
      'access-control-expose-headers: WWW-Authenticate, Payment-Receipt, Gate-Receipt, Retry-After, RateLimit, RateLimit-Policy',
      'www-authenticate: Bearer',
      'content-type: application/json; charset=utf-8',
      'content-length: 29',
      'Connection: close',
    ],
  })
  for (const answer of answers) assert.deepEqual(answer, first)
})

test('a suspended inbox refuses its own token, and takes requests again when it is resumed', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const headers = { authorization: `Bearer ${inbox.ingestToken}` }
  assert.equal((await send(server, inbox, { headers })).status, 204)
  await asOperator(server, suspendInbox(inbox.publicId, server.clock.now()))
  assert.deepEqual(await send(server, inbox, { headers }), UNAVAILABLE)
  assert.equal((await eventsOf(server, inbox)).length, 1, 'its owner still reads')
  await asOperator(server, resumeInbox(inbox.publicId))
  assert.equal((await send(server, inbox, { headers })).status, 204)
})

test('a preflight is answered and neither stored nor counted', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const answer = await exchange(
    server.url,
    `OPTIONS /c/${inbox.publicId}/sub HTTP/1.1\r\nHost: x\r\nOrigin: https://page.test\r\nAccess-Control-Request-Method: PATCH\r\nAccess-Control-Request-Headers: authorization, x-custom\r\nConnection: close\r\n\r\n`,
  )
  assert.equal(answer.status, 204)
  const { headers } = answer
  assert.equal(headers.get('access-control-allow-origin'), '*')
  assert.equal(
    headers.get('access-control-allow-methods'),
    'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
  )
  assert.equal(headers.get('access-control-allow-headers'), 'authorization, x-custom')
  assert.equal(headers.get('access-control-max-age'), '86400')
  assert.deepEqual(await eventsOf(server, inbox), [])
  assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 0)
})

test('an OPTIONS that is no preflight is a request like any other', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  for (const headers of [
    '',
    'Origin: https://a.test\r\n',
    'Access-Control-Request-Method: GET\r\n',
  ]) {
    const answer = await exchange(
      server.url,
      `OPTIONS /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n`,
    )
    assert.equal(answer.status, 204)
    assert.equal(answer.headers.get('access-control-allow-methods'), null)
  }
  assert.equal((await eventsOf(server, inbox)).length, 3)
})

test('what was accepted survives a restart, and so do sequence and counters', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  await send(server, inbox, { method: 'POST', body: 'before' })
  const before = await server.mayfly.catch(inbox).status()
  await server.restart()
  assert.deepEqual(await server.mayfly.catch(inbox).status(), before)
  await send(server, inbox, { method: 'POST', body: 'after' })
  assert.deepEqual(
    (await eventsOf(server, inbox)).map(({ sequence, body }) => [sequence, body]),
    [
      [2, 'after'],
      [1, 'before'],
    ],
  )
})

test('behind a trusted proxy the source is its client, and its own headers are left out', async (t) => {
  const server = await startServer(t, { MAYFLY_TRUSTED_PROXIES: '127.0.0.1/32,10.0.0.0/8' })
  const inbox = await anInbox(server)
  await send(server, inbox, {
    headers: {
      'x-forwarded-for': '6.6.6.6, 203.0.113.7, 10.1.1.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'mayfly.test',
      'x-forwarded-port': '443',
      'x-real-ip': '203.0.113.7',
      forwarded: 'for=203.0.113.7',
      via: '1.1 proxy',
      'x-forwarded-custom': 'mine',
    },
  })
  const [event] = await eventsOf(server, inbox)
  assert.equal(event?.sourceIp, '203.0.113.7')
  const names = event?.headers.map(({ name }) => name.toLowerCase()) ?? []
  assert.deepEqual(
    names.filter((name) => /forwarded|real-ip|via/.test(name)),
    ['x-forwarded-custom'],
  )
})

test('without a trusted proxy nobody can claim another source, and the claim is kept as sent', async (t) => {
  const server = await startServer(t, { MAYFLY_TRUSTED_PROXIES: '10.0.0.0/8' })
  const inbox = await anInbox(server)
  await send(server, inbox, { headers: { 'x-forwarded-for': '203.0.113.7', via: '1.1 proxy' } })
  const [event] = await eventsOf(server, inbox)
  assert.equal(event?.sourceIp, '127.0.0.1')
  const kept = event?.headers.filter(({ name }) => /^(?:x-forwarded-for|via)$/i.test(name)) ?? []
  assert.deepEqual(
    kept.map(({ value }) => value),
    ['203.0.113.7', '1.1 proxy'],
  )
})

// The owner

test('the owner sees the whole state of an inbox, in each of its states', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const owner = server.mayfly.catch(inbox)
  const fresh = await owner.status()
  const seen = {
    publicId: inbox.publicId,
    planId: 'spark',
    status: 'active',
    requestLimit: 100,
    storageLimitBytes: 5_242_880,
    maxBytesPerRequest: 65_536,
    acceptedRequestCount: 0,
    storedBytes: 0,
    createdAt: fresh.createdAt,
    expiresAt: inbox.expiresAt,
  }
  assert.deepEqual(fresh, seen)
  assert.equal(Date.parse(seen.createdAt) + DAY, Date.parse(seen.expiresAt))
  assert.match(seen.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

  await Promise.all(
    Array.from({ length: 100 }, () => send(server, inbox, { method: 'POST', body: '12345' })),
  )
  const full = { ...seen, acceptedRequestCount: 100, storedBytes: 500 }
  assert.deepEqual(await owner.status(), { ...full, status: 'exhausted' })

  await asOperator(server, suspendInbox(inbox.publicId, server.clock.now()))
  assert.deepEqual(await owner.status(), { ...full, status: 'suspended' }, 'above exhausted')
  assert.equal((await eventsOf(server, inbox)).length, 100)

  server.clock.advance(DAY)
  assert.deepEqual(await owner.status(), { ...full, status: 'expired' }, 'above suspended')

  await owner.destroy()
  assert.deepEqual(await ask(server, `/api/catch/${inbox.publicId}`, inbox.ownerToken), NOT_FOUND)
})

const ownerCalls: [method: string, path: (id: string) => string, unknown: Answer][] = [
  ['GET', (id) => `/api/catch/${id}`, NOT_FOUND],
  ['DELETE', (id) => `/api/catch/${id}`, NOT_FOUND],
  ['GET', (id) => `/api/catch/${id}/events`, UNAUTHORIZED],
  ['DELETE', (id) => `/api/catch/${id}/events/${randomUUID()}`, NOT_FOUND],
]

for (const [method, path, unknown] of ownerCalls) {
  test(`${method} ${path('{publicId}').replace(/[0-9a-f-]{36}/, '{eventId}')} lets nobody in but the owner`, async (t) => {
    const server = await startServer(t)
    const inbox = await anInbox(server)
    const other = await anInbox(server)
    const { publicId, ownerToken } = inbox
    const mine = path(publicId)
    const cases: [note: string, path: string, authorization: string | null, expected: Answer][] = [
      ['no token', mine, null, UNAUTHORIZED],
      ['an empty header', mine, '', UNAUTHORIZED],
      ['a scheme without a token', mine, 'Bearer', UNAUTHORIZED],
      ['another scheme', mine, `Basic ${ownerToken}`, UNAUTHORIZED],
      ['a bare token', mine, ownerToken, UNAUTHORIZED],
      ['a token and more', mine, `Bearer ${ownerToken} ${ownerToken}`, UNAUTHORIZED],
      ['a list of tokens', mine, `Bearer ${ownerToken}, Bearer ${ownerToken}`, UNAUTHORIZED],
      ['a token that is none', mine, 'Bearer x', UNAUTHORIZED],
      ['a typo', mine, `Bearer ${typo(ownerToken)}`, UNAUTHORIZED],
      ['a token cut short', mine, `Bearer ${ownerToken.slice(0, -1)}`, UNAUTHORIZED],
      ['its ingest token', mine, `Bearer ${inbox.ingestToken}`, UNAUTHORIZED],
      [
        'an owner token of another product',
        mine,
        `Bearer ${tokenOf('pulse_owner', randomBytes(32))}`,
        UNAUTHORIZED,
      ],
      ["another owner's token", mine, `Bearer ${other.ownerToken}`, unknown],
      ["nobody's token", mine, `Bearer ${tokenOf('catch_owner', randomBytes(32))}`, unknown],
      ['an unknown inbox', path('catch_0000000000000000000000'), `Bearer ${ownerToken}`, unknown],
      ['an inbox that is none', path('x'), `Bearer ${ownerToken}`, unknown],
      ['an inbox of any length', path('x'.repeat(200)), `Bearer ${ownerToken}`, unknown],
      [
        'an unknown inbox without a token',
        path('catch_0000000000000000000000'),
        null,
        UNAUTHORIZED,
      ],
    ]
    for (const [note, target, authorization, expected] of cases) {
      const answer = await fetch(server.url + target, {
        method,
        ...(authorization === null ? {} : { headers: { authorization } }),
      })
      assert.deepEqual({ status: answer.status, text: await answer.text() }, expected, note)
      assert.equal(
        answer.headers.get('www-authenticate'),
        expected.status === 401 ? 'Bearer' : null,
        note,
      )
    }
    assert.equal((await server.mayfly.catch(inbox).status()).status, 'active')
  })
}

test('the scheme of a token is read in any case', async (t) => {
  const server = await startServer(t)
  const { publicId, ownerToken } = await anInbox(server)
  for (const scheme of ['bearer', 'BEARER', 'Bearer ']) {
    const answer = await fetch(`${server.url}/api/catch/${publicId}`, {
      headers: { authorization: `${scheme} ${ownerToken}` },
    })
    assert.equal(answer.status, 200, scheme)
  }
})

test('who is asking comes before what is asked', async (t) => {
  const server = await startServer(t)
  const { publicId, ownerToken } = await anInbox(server)
  const { ownerToken: other } = await anInbox(server)
  const events = `/api/catch/${publicId}/events`
  assert.deepEqual(await ask(server, `${events}?limit=0`, other), UNAUTHORIZED)
  assert.deepEqual(await ask(server, `${events}?limit=0`, ownerToken), INVALID_QUERY)
  assert.deepEqual(await ask(server, `${events}/nothing`, other, 'DELETE'), NOT_FOUND)
  assert.deepEqual(await ask(server, `${events}/nothing`, 'x', 'DELETE'), UNAUTHORIZED)
  const unread = await fetch(`${server.url}/api/catch/${publicId}`, {
    method: 'DELETE',
    headers: { 'content-type': 'application/json' },
    body: '{',
  })
  assert.equal(unread.status, 401)
})

test('the list is newest first, and its cursor reaches every event once', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const owner = server.mayfly.catch(inbox)
  assert.deepEqual(await owner.page(), { events: [], nextCursor: null, latestSequence: 0 })
  for (let i = 1; i <= 45; i++) await send(server, inbox, { method: 'POST', body: `${i}` })

  const pages: number[][] = []
  let cursor: number | null = null
  do {
    const page: EventPage = await owner.page(cursor === null ? {} : { cursor })
    pages.push(page.events.map(({ sequence }) => sequence))
    assert.equal(page.latestSequence, 45)
    cursor = page.nextCursor
  } while (cursor !== null)
  assert.deepEqual(
    pages.map((page) => page.length),
    [20, 20, 5],
  )
  assert.deepEqual(
    pages.flat(),
    Array.from({ length: 45 }, (_, i) => 45 - i),
  )
  const { nextCursor } = await owner.page({ limit: 45 })
  assert.equal(nextCursor, null, 'a page that holds everything has nothing below it')
  assert.equal((await owner.page({ limit: 44 })).nextCursor, 2)
  assert.deepEqual(await owner.page({ cursor: 1 }), {
    events: [],
    nextCursor: null,
    latestSequence: 45,
  })
  const below: EventPage = await owner.page({ cursor: 3, limit: 50 })
  assert.deepEqual(
    below.events.map(({ sequence }) => sequence),
    [2, 1],
  )
  assert.equal((await owner.page({ cursor: 1_000_000 })).events.length, 20)
})

test('a cursor is stable: what arrives meanwhile shows on no later page', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const owner = server.mayfly.catch(inbox)
  for (let i = 1; i <= 4; i++) await send(server, inbox, {})
  const first = await owner.page({ limit: 2 })
  await send(server, inbox, {})
  await owner.deleteEvent(first.events[1]?.id ?? '')
  const second = await owner.page({ limit: 2, cursor: first.nextCursor ?? 0 })
  assert.deepEqual(
    second.events.map(({ sequence }) => sequence),
    [2, 1],
  )
  assert.equal(second.latestSequence, 5)
})

test('filters combine, and compare as documented', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const token = { authorization: `Bearer ${inbox.ingestToken}` }
  const sent: RequestInit[] = [
    { method: 'POST', body: 'one', headers: { 'content-type': 'application/json' } },
    {
      method: 'POST',
      body: 'two',
      headers: { ...token, 'content-type': 'APPLICATION/JSON ; a=b' },
    },
    { method: 'PUT', body: 'three', headers: { 'content-type': 'text/plain' } },
    { method: 'PUT', body: 'four', headers: { ...token, 'content-type': 'application/json' } },
    { method: 'DELETE', headers: token },
  ]
  for (const request of sent) await send(server, inbox, request)
  const found = async (query: Parameters<ReturnType<typeof server.mayfly.catch>['page']>[0]) =>
    (await server.mayfly.catch(inbox).page(query)).events.map(({ sequence }) => sequence)
  assert.deepEqual(await found({ access: 'public' }), [3, 1])
  assert.deepEqual(await found({ access: 'authenticated' }), [5, 4, 2])
  assert.deepEqual(await found({ method: 'put' }), [4, 3])
  assert.deepEqual(await found({ method: 'PUT' }), [4, 3])
  assert.deepEqual(await found({ method: 'GET' }), [])
  assert.deepEqual(await found({ contentType: 'application/json' }), [4, 2, 1])
  assert.deepEqual(await found({ contentType: 'Application/JSON; charset=utf-8' }), [4, 2, 1])
  assert.deepEqual(await found({ contentType: 'application' }), [])
  assert.deepEqual(await found({ access: 'authenticated', method: 'PUT' }), [4])
  assert.deepEqual(
    await found({ access: 'authenticated', contentType: 'application/json', q: 'TW' }),
    [2],
  )
  assert.deepEqual(await found({ method: 'POST', cursor: 2 }), [1])
  const page = await server.mayfly.catch(inbox).page({ access: 'authenticated', limit: 2 })
  assert.deepEqual([page.nextCursor, page.latestSequence], [4, 5])
})

test('a search reads text bodies, paths, queries and content types, in any case', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const post = (path: string, body: string | Buffer<ArrayBuffer>, type: string): Promise<Answer> =>
    send(server, inbox, { method: 'POST', body, headers: { 'content-type': type } }, path)
  await post('', 'Über den Wolken', 'text/plain')
  await post('/Hooks/Stripe', '', 'text/plain')
  await post('?event=Invoice.Paid', '', 'text/plain')
  await post('', '', 'application/vnd.github+json')
  await post('', Buffer.from('\xffneedle', 'latin1'), 'application/octet-stream')
  await post('', '100% _sure_ \\ [a-z]*', 'text/html')
  await post('', 'ЖУРНАЛ', 'text/html')
  const found = async (q: string) =>
    (await server.mayfly.catch(inbox).page({ q })).events.map(({ sequence }) => sequence)
  assert.deepEqual(await found('über'), [1])
  assert.deepEqual(await found('ÜBER DEN'), [1])
  assert.deepEqual(await found('журнал'), [7])
  assert.deepEqual(await found('hooks/stripe'), [2])
  assert.deepEqual(await found('INVOICE.PAID'), [3])
  assert.deepEqual(await found('GitHub'), [4])
  assert.deepEqual(await found('needle'), [], 'not in bytes that are no text')
  assert.deepEqual(await found('octet-STREAM'), [5], 'but in what describes them')
  assert.deepEqual(await found('% _'), [6], 'the signs of SQL mean themselves')
  assert.deepEqual(await found('%'), [6])
  assert.deepEqual(await found('\\ [a-z]*'), [6], 'and so do those of patterns')
  assert.deepEqual(await found('nowhere'), [])
  assert.deepEqual(await found('\u0000'), [])
  assert.equal((await found('')).length, 7)
})

test('a search has cursors too', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  for (let i = 1; i <= 20; i++) {
    await send(server, inbox, { method: 'POST', body: i % 3 === 0 ? 'fizz' : 'plain' })
  }
  const owner = server.mayfly.catch(inbox)
  const first = await owner.page({ q: 'FIZZ', limit: 4 })
  assert.deepEqual(
    first.events.map(({ sequence }) => sequence),
    [18, 15, 12, 9],
  )
  const second = await owner.page({ q: 'FIZZ', limit: 4, cursor: first.nextCursor ?? 0 })
  assert.deepEqual(
    second.events.map(({ sequence }) => sequence),
    [6, 3],
  )
  assert.equal(second.nextCursor, null)
})

test('a query that is out of bounds, unknown or repeated is refused', async (t) => {
  const server = await startServer(t)
  const { publicId, ownerToken } = await anInbox(server)
  const bad = [
    'limit=0',
    'limit=51',
    'limit=-1',
    'limit=1.5',
    'limit=1e1',
    'limit=%2B5',
    'limit=05',
    'limit=',
    'limit=five',
    'limit=1&limit=2',
    'limit=9007199254740993',
    'cursor=0',
    'cursor=-1',
    'cursor=',
    'cursor=x',
    'cursor=99999999999999999999',
    'access=Public',
    'access=',
    'access=owner',
    'access=public&access=public',
    'method=',
    `method=${'x'.repeat(21)}`,
    'contentType=',
    `contentType=${'x'.repeat(256)}`,
    `q=${'x'.repeat(121)}`,
    'q=a&q=b',
    'surprise=1',
    'Limit=1',
    '__proto__=1',
    'constructor=1',
    '%FF=1',
    'limit[]=1',
  ]
  for (const query of bad) {
    const answer = await ask(server, `/api/catch/${publicId}/events?${query}`, ownerToken)
    assert.deepEqual(answer, INVALID_QUERY, query)
  }
  const good = [
    '',
    'limit=1',
    'limit=50',
    'cursor=1',
    'cursor=999999999999999',
    'q=',
    `q=${'x'.repeat(120)}`,
    `q=${'%E2%9A%A1'.repeat(120)}`,
    'method=x',
    'access=public',
    'limit=%35',
  ]
  for (const query of good) {
    const answer = await ask(server, `/api/catch/${publicId}/events?${query}`, ownerToken)
    assert.equal(answer.status, 200, query)
  }
})

test('a page of large bodies ends early, and its cursor still reaches all of them', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server, 'standard')
  const body = 'x'.repeat(262_144)
  for (let i = 0; i < 20; i++) await send(server, inbox, { method: 'POST', body })
  const owner = server.mayfly.catch(inbox)
  for (const query of [{ limit: 50 }, { limit: 50, q: 'xxx' }]) {
    const first = await owner.page(query)
    assert.ok(first.events.length > 0 && first.events.length < 20)
    assert.ok(first.events.reduce((bytes, event) => bytes + event.bodyBytes, 0) <= 4_194_304)
    const all = await Array.fromAsync(owner.events(query))
    assert.deepEqual(
      all.map(({ sequence }) => sequence),
      Array.from({ length: 20 }, (_, i) => 20 - i),
    )
  }
})

test('deleting an event frees its bytes and not its count, and leaves the others', async (t) => {
  const server = await aSmallServer(t)
  const inbox = await anInbox(server)
  const owner = server.mayfly.catch(inbox)
  for (const body of ['x'.repeat(60), 'y'.repeat(40)]) {
    await send(server, inbox, { method: 'POST', body })
  }
  const [newest, oldest] = (await owner.page()).events
  assert.deepEqual(await send(server, inbox, { method: 'POST', body: 'z' }), UNAVAILABLE)

  await owner.deleteEvent(oldest?.id ?? '')
  const status = await owner.status()
  assert.deepEqual([status.storedBytes, status.acceptedRequestCount], [40, 2])
  const { events, latestSequence } = await owner.page()
  assert.deepEqual(events, [newest])
  assert.equal(latestSequence, 2)
  assert.equal((await send(server, inbox, { method: 'POST', body: 'z'.repeat(60) })).status, 204)
  const [third] = (await owner.page()).events
  assert.equal(third?.sequence, 3, 'a sequence is never given twice')
})

test('an event is deleted once, also by 20 at once', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  await send(server, inbox, { method: 'POST', body: '12345' })
  await send(server, inbox, { method: 'POST', body: '12345' })
  const [event] = (await server.mayfly.catch(inbox).page()).events
  const path = `/api/catch/${inbox.publicId}/events/${event?.id}`
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => ask(server, path, inbox.ownerToken, 'DELETE')),
  )
  assert.equal(answers.filter(({ status }) => status === 204).length, 1)
  assert.equal(answers.filter(({ text }) => text === NOT_FOUND.text).length, 19)
  assert.equal((await server.mayfly.catch(inbox).status()).storedBytes, 5)
})

test('an event id is read in either case', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  await send(server, inbox, {})
  const [event] = (await server.mayfly.catch(inbox).page()).events
  await server.mayfly.catch(inbox).deleteEvent(event?.id.toUpperCase() ?? '')
  assert.deepEqual(await eventsOf(server, inbox), [])
})

test('an event id that is malformed, unknown or of another inbox is not found', async (t) => {
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const other = await anInbox(server)
  await send(server, inbox, {})
  await send(server, other, {})
  const [mine] = (await server.mayfly.catch(inbox).page()).events
  const [theirs] = (await server.mayfly.catch(other).page()).events
  assert.ok(mine && theirs)
  const ids = [
    'x',
    '1',
    '%20',
    "' or 1=1",
    mine.id.slice(0, -1),
    `${mine.id}0`,
    mine.id.replaceAll('-', ''),
    randomUUID(),
    theirs.id,
    // The right place with another salt, another time, and the wrong place.
    `${mine.id.slice(0, 15)}${mine.id[15] === '0' ? '1' : '0'}${mine.id.slice(16)}`,
    `${mine.id[0] === '0' ? '1' : '0'}${mine.id.slice(1)}`,
    `${mine.id.slice(0, -1)}2`,
    `${mine.id.slice(0, 24)}ffffffffffff`,
    'x'.repeat(200),
  ]
  for (const id of ids) {
    const path = `/api/catch/${inbox.publicId}/events/${id}`
    assert.deepEqual(await ask(server, path, inbox.ownerToken, 'DELETE'), NOT_FOUND, id)
  }
  assert.equal((await eventsOf(server, inbox)).length, 1)
  assert.equal((await eventsOf(server, other)).length, 1)
})

test('a destroyed inbox is gone at once, with its events and both of its tokens', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const other = await anInbox(server)
  await send(server, inbox, { method: 'POST', body: 'x' })
  await send(server, other, { method: 'POST', body: 'x' })
  const path = `/api/catch/${inbox.publicId}`
  assert.deepEqual(await ask(server, path, inbox.ownerToken, 'DELETE'), { status: 204, text: '' })

  const headers = { authorization: `Bearer ${inbox.ingestToken}` }
  assert.deepEqual(await send(server, inbox, {}), UNAVAILABLE)
  assert.deepEqual(await send(server, inbox, { headers }), UNAVAILABLE)
  assert.deepEqual(await ask(server, path, inbox.ownerToken), NOT_FOUND)
  assert.deepEqual(await ask(server, path, inbox.ownerToken, 'DELETE'), NOT_FOUND)
  assert.deepEqual(await ask(server, `${path}/events`, inbox.ownerToken), UNAUTHORIZED)

  t.mock.timers.tick(PURGE)
  await server.restart()
  assert.deepEqual(rows(server, 'select public_id from catch_inbox'), [
    { public_id: other.publicId },
  ])
  assert.deepEqual(rows(server, 'select public_id from catch_event'), [
    { public_id: other.publicId },
  ])
  assert.equal((await eventsOf(server, other)).length, 1)
})

test('after expiry the content is gone at once; the owner sees why until the purge, then nothing', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const inbox = await anInbox(server)
  const longer = await anInbox(server, 'standard')
  await send(server, inbox, { method: 'POST', body: 'x' })
  await send(server, longer, { method: 'POST', body: 'x' })
  const owner = server.mayfly.catch(inbox)
  const [event] = (await owner.page()).events
  const path = `/api/catch/${inbox.publicId}`

  server.clock.advance(DAY)
  assert.deepEqual(await send(server, inbox, {}), UNAVAILABLE)
  assert.equal((await owner.status()).status, 'expired')
  assert.deepEqual(await owner.page(), { events: [], nextCursor: null, latestSequence: 1 })
  assert.deepEqual((await owner.page({ q: 'x' })).events, [])
  assert.deepEqual(
    await ask(server, `${path}/events/${event?.id}`, inbox.ownerToken, 'DELETE'),
    NOT_FOUND,
  )

  t.mock.timers.tick(PURGE)
  await server.restart()
  assert.deepEqual(rows(server, 'select public_id from catch_event'), [
    { public_id: longer.publicId },
  ])
  assert.equal((await server.mayfly.catch(inbox).status()).status, 'expired')

  server.clock.advance(15 * 60 * 1000)
  t.mock.timers.tick(PURGE)
  await server.restart()
  assert.deepEqual(await ask(server, path, inbox.ownerToken), NOT_FOUND)
  assert.deepEqual(await ask(server, `${path}/events`, inbox.ownerToken), UNAUTHORIZED)
  assert.deepEqual(await send(server, inbox, {}), UNAVAILABLE)
  assert.equal((await eventsOf(server, longer)).length, 1)
})

test('a purge goes through everything that is over, however much', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const server = await startServer(t)
  const inboxes = await Promise.all(Array.from({ length: 120 }, () => anInbox(server)))
  const [full] = inboxes
  assert.ok(full)
  await Promise.all(Array.from({ length: 100 }, () => send(server, full, {})))
  for (const inbox of inboxes.slice(1)) await send(server, inbox, {})
  for (const inbox of inboxes.slice(60)) await server.mayfly.catch(inbox).destroy()
  server.clock.advance(DAY + 15 * 60 * 1000)
  t.mock.timers.tick(PURGE)
  await server.restart()
  assert.deepEqual(rows(server, 'select public_id from catch_inbox'), [])
  assert.deepEqual(rows(server, 'select public_id from catch_event'), [])
})

type Answer = { status: number; text: string }

/** Bought the quickest way; no token of it is used yet. */
function anInbox(
  { mayfly, pay }: TestServer,
  planId: 'spark' | 'standard' = 'spark',
): Promise<CatchCapability> {
  return mayfly.buyCatch({ planId, onInvoice: ({ bolt11 }) => pay(bolt11) })
}

/** Sells inboxes with room for 60 bytes a request and 100 bytes in all. */
async function aSmallServer(t: After): Promise<TestServer> {
  const file = join(await temporaryFolder(t), 'catalog.json')
  const spark = { storageLimitBytes: 100, maxBytesPerRequest: 60 }
  await writeFile(file, JSON.stringify({ catch: { spark } }))
  return startServer(t, { MAYFLY_CATALOG: file })
}

async function send(
  { url }: TestServer,
  { publicId }: CatchCapability,
  request: RequestInit,
  rest = '',
): Promise<Answer> {
  const answer = await fetch(`${url}/c/${publicId}${rest}`, request)
  return { status: answer.status, text: await answer.text() }
}

async function ask(
  { url }: TestServer,
  path: string,
  token: string,
  method = 'GET',
): Promise<Answer> {
  const answer = await fetch(url + path, { method, headers: { authorization: `Bearer ${token}` } })
  return { status: answer.status, text: await answer.text() }
}

function eventsOf({ mayfly }: TestServer, inbox: CatchCapability): Promise<CatchEvent[]> {
  return Array.fromAsync(mayfly.catch(inbox).events())
}

/** A GET whose target goes out as it is. */
function get({ url }: TestServer, target: string): Promise<Exchanged> {
  return exchange(url, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
}

/** All of an answer but the time. */
async function facelessly(server: TestServer, target: string): Promise<unknown> {
  const { status, body, lines } = await get(server, target)
  return { status, body, headers: lines.filter((line) => !line.startsWith('Date:')) }
}

type Exchanged = { status: number; headers: Headers; lines: string[]; body: string }

/** Sends bytes as they are and reads until the server closes the connection. */
function exchange(url: string, head: string, body = ''): Promise<Exchanged> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(Number(port), hostname, () => {
      socket.write(Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]))
    })
    socket.setEncoding('latin1')
    socket.on('data', (part) => {
      answer += part
    })
    socket.on('error', reject)
    socket.on('close', () => {
      const end = answer.indexOf('\r\n\r\n')
      const [first = '', ...lines] = answer.slice(0, end).split('\r\n')
      const headers = new Headers(
        lines.map((line): [string, string] => {
          const colon = line.indexOf(':')
          return [line.slice(0, colon), line.slice(colon + 1).trim()]
        }),
      )
      resolve({ status: Number(first.split(' ')[1]), headers, lines, body: answer.slice(end + 4) })
    })
  })
}

/** What the operator's commands do, on the file of the running server. */
async function asOperator({ file }: TestServer, change: Statement): Promise<void> {
  const store = await openSqlite(file)
  await store.write([change])
  await store.close()
}

function rows({ file }: TestServer, query: string): Record<string, unknown>[] {
  const store = new DatabaseSync(file, { readOnly: true })
  try {
    return store
      .prepare(query)
      .all()
      .map((row) => ({ ...row }))
  } finally {
    store.close()
  }
}

function sha256(body: string | Buffer): string {
  return createHash('sha256').update(body).digest('hex')
}

/** The token with one digit changed, so that only its checksum gives it away. */
function typo(token: string): string {
  const digit = token.at(-20) === 'a' ? 'b' : 'a'
  return `${token.slice(0, -20)}${digit}${token.slice(-19)}`
}
