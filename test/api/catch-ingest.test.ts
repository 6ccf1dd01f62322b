import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import type { CatchEvent } from '../../src/client/index.ts'
import { tokenOf } from '../../src/lib/ids.ts'
import { anInbox, eventsOf, get, send } from '../support/catch.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { exchange } from '../support/socket.ts'
import { typo } from '../support/tokens.ts'

suite('a request to an inbox', () => {
  const theServer = shareServer()

  test('an event is exactly what was sent, with what the server knows of it', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    const before = server.now()
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

  test('an inbox takes every method that it lists, HEAD and OPTIONS too, each with a body', async () => {
    const server = await theServer()
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
    assert.equal((await server.mayfly.catch(inbox).status()).acceptedRequestCount, 7)
  })

  test('a body comes back byte for byte, as text unless base64 shows it in fewer bytes', async () => {
    const server = await theServer()
    const inbox = await anInbox(server, 'standard')
    const bodies: [note: string, body: Buffer<ArrayBuffer>, encoding: 'utf8' | 'base64'][] = [
      ['nothing', Buffer.alloc(0), 'utf8'],
      ['every byte', Buffer.from(Array.from({ length: 256 }, (_, i) => i)), 'base64'],
      ['noise', Buffer.from(randomBytes(65_536)), 'base64'],
      ['a few zeros, which are text', Buffer.alloc(4), 'utf8'],
      ['many zeros, which base64 shows in fewer bytes', Buffer.alloc(1_000), 'base64'],
      ['a byte order mark', Buffer.from('\ufeffx'), 'utf8'],
      ['line ends of both kinds', Buffer.from('a\r\nb\nc\r'), 'utf8'],
      ['broken JSON', Buffer.from('{"a":'), 'utf8'],
      ['an emoji', Buffer.from('⚡'), 'utf8'],
      ['half an emoji', Buffer.from('⚡').subarray(0, 2), 'base64'],
      ['a lone surrogate', Buffer.from([0xed, 0xa0, 0x80]), 'base64'],
      ['quotes, which JSON escapes', Buffer.from('"'.repeat(100_000)), 'utf8'],
      ['line ends, which it escapes too', Buffer.from('\\\r\n\t\f\b'.repeat(10_000)), 'utf8'],
      ['letters of many bytes', Buffer.from('é€😀'.repeat(10_000)), 'utf8'],
      ['a sign that JSON takes as it is', Buffer.alloc(1_000, 0x7f), 'utf8'],
      ['one control character', Buffer.from('\u0001'), 'utf8'],
      ['one in a long line', Buffer.from(`a line\u0000${'of text '.repeat(100)}`), 'utf8'],
      ['a few that colour text', Buffer.from('\u001b[31mred\u001b[0m '.repeat(5)), 'base64'],
      ['hundreds of thousands', Buffer.alloc(200_000), 'base64'],
      [
        'as many as base64 takes',
        Buffer.from(`${'x'.repeat(20_000)}${'\u0002'.repeat(2_000)}`),
        'base64',
      ],
      ['a few less', Buffer.from(`${'x'.repeat(60_000)}${'\u0002'.repeat(2_000)}`), 'utf8'],
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

  test('a chunked body is stored without its chunks', async () => {
    const server = await theServer()
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

  test('a request with the ingest token is authenticated; with anything else it is public', async () => {
    const server = await theServer()
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
    await get(server, `/c/${inbox.publicId}?access_token=${ingestToken}`)
    assert.equal((await eventsOf(server, inbox))[0]?.access, 'public', 'the token in the query')
  })

  test('a preflight is answered and neither stored nor counted', async () => {
    const server = await theServer()
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

  test('an OPTIONS without preflight headers is a request like any other', async () => {
    const server = await theServer()
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

  test('nobody can claim another source without a trusted proxy, and the claim is stored as sent', async (t) => {
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
})

function sha256(body: string | Buffer): string {
  return createHash('sha256').update(body).digest('hex')
}
