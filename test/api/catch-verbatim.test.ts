import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import { type TokenKind, tokenOf } from '../../src/lib/ids.ts'
import { anInbox, eventsOf, get, send } from '../support/catch.ts'
import { shareServer } from '../support/shared-server.ts'
import { exchange } from '../support/socket.ts'
import { typo } from '../support/tokens.ts'

suite('a request as an inbox stores it', () => {
  const theServer = shareServer()

  test('headers keep their order, their case and their number', async () => {
    const server = await theServer()
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

  test('neither our tokens nor payment credentials are stored among the headers', async () => {
    const server = await theServer()
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
    for (const name of ['Authorization', 'X-Api-Key', 'Content-Type']) {
      for (const secret of secrets) {
        await exchange(
          server.url,
          `GET /c/${inbox.publicId} HTTP/1.1\r\nHost: x\r\n${name}: ${secret}\r\nConnection: close\r\n\r\n`,
        )
        const [event] = (await server.mayfly.catch(inbox).page({ limit: 1 })).events
        assert.equal(event?.contentType, null)
        assert.deepEqual(
          event?.headers,
          [
            { name: 'Host', value: 'x' },
            { name: 'Connection', value: 'close' },
          ],
          `${name}: ${secret}`,
        )
      }
      await send(server, inbox, {
        headers: { 'Payment-Preimage': '00'.repeat(32), 'X-Kept': 'yes' },
      })
      const [proven] = (await server.mayfly.catch(inbox).page({ limit: 1 })).events
      const names = proven?.headers.map((header) => header.name.toLowerCase()) ?? []
      assert.deepEqual(
        [names.includes('x-kept'), names.includes('payment-preimage')],
        [true, false],
      )
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

  test('path and query are kept raw, as a sender may have signed them', async () => {
    const server = await theServer()
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

  test('the path begins where the inbox ends, however the address is written', async () => {
    const server = await theServer()
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

  test('any content type is taken, even one that is malformed', async () => {
    const server = await theServer()
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
})
