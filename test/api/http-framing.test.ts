import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { anInbox } from '../support/catch.ts'
import { ask, assertError } from '../support/http.ts'
import { shareServer } from '../support/shared-server.ts'
import { exchange } from '../support/socket.ts'

const ID = 'catch_0000000000000000000000'

suite('the framing of HTTP', () => {
  const theServer = shareServer()

  test('headers up to 32 KiB are read, and more are refused', async () => {
    const { url } = await theServer()
    const header = (bytes: number): string => `X-Long: ${'x'.repeat(bytes)}\r\n`
    assert.equal((await ask(url, 'GET /health', { headers: header(31 * 1024) })).status, 200)
    assertError(
      await ask(url, 'GET /health', { headers: header(33 * 1024) }),
      '431 request too large',
    )
    assertError(await ask(url, `GET /${'x'.repeat(33 * 1024)}`), '431 request too large')
    const many = 'X-Short: x\r\n'.repeat(5_000)
    assertError(await ask(url, 'GET /health', { headers: many }), '431 request too large')
  })

  test('bytes that are not HTTP are refused in JSON, with a date, for any page to read', async () => {
    const { url } = await theServer()
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
      const answer = await exchange(url, bytes)
      assertError(answer, '400 invalid request body', JSON.stringify(bytes))
      assert.match(answer.body, /"expected":"an HTTP\/1\.1 request/)
      const date = answer.headers.get('date') ?? ''
      assert.match(date, /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/)
      assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    }
  })

  test('a request of HTTP/1.1 has exactly one Host; one of HTTP/1.0 may have none', async () => {
    const { url } = await theServer()
    const nameless = await exchange(url, 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n')
    assertError(nameless, '400 invalid request body')
    const two = await ask(url, 'GET /health', { headers: 'host: elsewhere\r\n' })
    assertError(two, '400 invalid request body')
    assert.match(two.body, /"field":"Host","expected":"one line"/)
    assert.equal((await exchange(url, 'GET /health HTTP/1.0\r\n\r\n')).status, 200)
  })

  test('a Host that no name, address and port can be is refused', async () => {
    const { url } = await theServer()
    const withHost = (host: string) =>
      exchange(url, `GET /health HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    for (const host of ['a b', 'a/b', 'user@a', 'a,b c', 'a:b', '[::1', '[]', 'a"b', 'a\\b', 'é']) {
      const answer = await withHost(host)
      assertError(answer, '400 invalid request body', host)
      assert.match(answer.body, /"field":"Host","expected":"a name or an address/, host)
    }
    for (const host of ['', 'a', 'a_b.example:8402', 'a:', '127.0.0.1:1', '[::1]:8402', 'a%20b']) {
      assert.equal((await withHost(host)).status, 200, host)
    }
  })

  test('a body in a transfer coding that is not known is refused, and not stored as it is', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    const send = (coding: string) =>
      exchange(
        server.url,
        `POST /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ${coding}\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
      )
    const answer = await send('gzip, chunked')
    assertError(answer, '400 invalid request body')
    assert.match(answer.body, /"field":"Transfer-Encoding","expected":"chunked"/)
    assert.equal((await send('Chunked')).status, 204)
    const events = await Array.fromAsync(server.mayfly.catch(inbox).events())
    assert.deepEqual(
      events.map(({ body }) => body),
      ['hello'],
    )
  })

  test('a body of two types is refused where its type is read, and an inbox keeps both', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    const send = (path: string, types: string[], body = '{"planId":"spark"}') =>
      exchange(
        server.url,
        `POST ${path} HTTP/1.1\r\nHost: x\r\nIdempotency-Key: ${randomUUID()}\r\nX-Whisper-Plan: spark\r\n${types.map((type) => `Content-Type: ${type}\r\n`).join('')}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      )
    const json = 'application/json'
    const bytes = 'application/octet-stream'
    const pay = '{"bolt11":"ln"}'
    for (const [path, types, body] of [
      ['/api/payments/catch', [json, 'text/plain']],
      ['/api/payments/catch', [json, json]],
      ['/api/payments/whisper', [bytes, json], 'x'.repeat(64)],
      ['/api/buy/catch/spark', [json, 'text/plain'], '{}'],
      ['/simulator/pay', [json, 'text/plain'], pay],
    ] as const) {
      const answer = await send(path, [...types], body)
      assertError(answer, '400 unsupported media type', path)
      assert.match(answer.body, /"field":"Content-Type","expected":"one line"/, path)
    }
    assert.equal((await send('/api/payments/catch', [json])).status, 402)
    assert.equal((await send(`/c/${inbox.publicId}`, ['text/a', 'text/b'])).status, 204)
    const [event] = await Array.fromAsync(server.mayfly.catch(inbox).events())
    const types = event?.headers.filter(({ name }) => /^content-type$/i.test(name))
    assert.deepEqual(
      types?.map(({ value }) => value),
      ['text/a', 'text/b'],
    )
  })

  test('an unknown expectation or upgrade is ignored', async () => {
    const { url } = await theServer()
    assert.equal(
      (await ask(url, 'GET /health', { headers: 'Expect: the-unexpected\r\n' })).status,
      200,
    )
    const upgrade =
      'GET /health HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: upgrade, close\r\n\r\n'
    assert.equal((await exchange(url, upgrade)).status, 200)
  })

  test('a sender that asks before it sends is told to go on', async () => {
    const server = await theServer()
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

  test('a connection outlives a refusal, and an unread body is never the next request', async () => {
    const { url } = await theServer()
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
      [
        'OPTIONS /api/catalog',
        `${withBody}Origin: x\r\nAccess-Control-Request-Method: GET\r\n`,
        204,
      ],
      ['GET /%zz', withBody, 404],
    ] as const) {
      const { statuses: answers } = await exchange(
        url,
        `${line} HTTP/1.1\r\n${headers}\r\n${hidden}GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
      )
      assert.deepEqual(answers, [status, 200], line)
    }
  })

  test('a path whose first part is spelled with escapes leads nowhere, and stores nothing', async () => {
    const server = await theServer()
    const inbox = await anInbox(server)
    for (const path of [
      `/%63/${inbox.publicId}`,
      `/%63/${inbox.publicId}/hook`,
      `/c%2f${inbox.publicId}`,
      `/%61pi/catch/${inbox.publicId}`,
      '/%61pi/catalog',
      '/%68ealth',
      '/%zz',
    ]) {
      for (const method of ['GET', 'POST']) {
        const answer = await ask(server.url, `${method} ${path}`, {
          headers: 'Content-Length: 0\r\n',
        })
        assert.deepEqual([answer.status, answer.body], [404, '{"error":"not found"}'], path)
      }
    }
    assert.deepEqual(await Array.fromAsync(server.mayfly.catch(inbox).events()), [])
    // Past the first part the path is the sender's.
    const kept = await ask(server.url, `POST /c/${inbox.publicId}/%63`, {
      headers: 'Content-Length: 0\r\n',
    })
    assert.equal(kept.status, 204)
    const [event] = await Array.fromAsync(server.mayfly.catch(inbox).events())
    assert.equal(event?.path, '/%63')
  })
})
