/** What /mcp refuses, and what it never says. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CatchCapability } from '../../../src/client/index.ts'
import { containsToken } from '../../../src/lib/ids.ts'
import { anInbox } from '../../support/catch.ts'
import { jsonFile } from '../../support/folder.ts'
import { limited } from '../../support/limits.ts'
import {
  capabilityIn,
  challengeIn,
  connect,
  credentialOf,
  message,
  post,
  purchaseIn,
  type Result,
  readIn,
  refusalIn,
} from '../../support/mcp.ts'
import { startServer } from '../../support/server.ts'
import { shareServer } from '../../support/shared-server.ts'

const PING = message('ping')

const TOO_LARGE = 'request too large. Expected: at most 65536 bytes. Nothing was done.'

/** What a message that is not read is answered with (JSON-RPC 2.0 §5.1). */
const unread = (said: string) => ({
  jsonrpc: '2.0',
  id: null,
  error: { code: -32700, message: said },
})

suite('a request to /mcp', () => {
  const start = shareServer()

  test('a request to /mcp comes from a program or a page of the same address; any other page gets 403', async () => {
    const { url } = await start()
    const { port } = new URL(url)
    for (const origin of [
      'https://evil.example',
      'null',
      `http://evil.example:${port}`,
      `https://127.0.0.1:${port}`,
      `http://127.0.0.1:${Number(port) + 1}`,
      `${url}.evil.example`,
      '',
    ]) {
      const { status, headers, text } = await post(url, PING, { origin })
      assert.deepEqual([status, text], [403, '{"error":"foreign origin"}'], origin)
      assert.equal(headers.get('access-control-allow-origin'), null)
    }
    assert.equal((await post(url, PING, { origin: url })).status, 200)
    assert.equal((await post(url, PING)).status, 200)
  })

  test('a request to /mcp is POST alone, and no page may ask for more', async () => {
    const { url } = await start()
    for (const method of ['GET', 'DELETE', 'PUT', 'OPTIONS']) {
      const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
      const answer = await fetch(`${url}/mcp`, { method, headers })
      assert.equal(answer.status, 405, method)
      assert.equal(answer.headers.get('allow'), 'POST')
      assert.equal(answer.headers.get('access-control-allow-origin'), null)
    }
  })

  test('a request to /mcp that says where tokens go in other words is refused, because they would be in results', async () => {
    const { url } = await start()
    for (const query of ['?tokens=Meta', '?tokens=', '?tokens=meta&tokens=meta']) {
      const answer = await fetch(`${url}/mcp${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: PING,
      })
      assert.deepEqual(
        [answer.status, await answer.json()],
        [400, { error: 'invalid query', field: 'tokens', expected: 'meta, or left out' }],
        query,
      )
    }
  })

  test('a request to /mcp with no message, or with one that is too deep, too dense or too long, is refused before it is parsed', async () => {
    const { url } = await start()
    const notOne =
      'invalid request body. Expected: one message of JSON-RPC, as JSON in UTF-8 with each member once. Nothing was done.'
    const tooDense =
      'invalid request body. Expected: at most 2000 of { } [ ] , : outside of strings, and 32 levels. Nothing was done.'
    const zeros = { name: 'catalog', arguments: { x: Array(1_992).fill(0) } }
    for (const [what, body, said] of [
      ['a batch', `[${PING},${PING}]`, notOne],
      ['a member twice', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}', notOne],
      ['half of a message', PING.slice(0, -1), notOne],
      ['nothing', '', notOne],
      ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), notOne],
      ['33 levels', message('tools/call', nested(32)), tooDense],
      ['brackets up to its largest size', '['.repeat(65_536), tooDense],
      ['2001 signs', message('tools/call', zeros), tooDense],
      ['objects up to its largest size', `[${'{},'.repeat(21_000)}{}]`, tooDense],
      ['one byte too many', PING + ' '.repeat(65_537 - PING.length), TOO_LARGE],
      ['2 MB', JSON.stringify({ x: 'x'.repeat(2_000_000) }), TOO_LARGE],
    ] as const) {
      const { status, json } = await post(url, body)
      assert.deepEqual([status, json], [400, unread(said)], what)
    }
  })

  test('a request to /mcp with another content type is refused', async () => {
    const { url } = await start()
    const { status, text } = await post(url, PING, { 'content-type': 'text/plain' })
    assert.deepEqual(
      [status, text],
      [
        400,
        '{"error":"unsupported media type","field":"Content-Type","expected":"application/json"}',
      ],
    )
  })

  test('a request to /mcp of the new revision must say its method and tool in its headers', async () => {
    const { url } = await start()
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const body = message('tools/call', { name: 'catalog', arguments: {}, _meta })
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' }
    for (const wrong of [
      {},
      { ...headers, 'mcp-name': 'destroy' },
      { ...headers, 'mcp-method': 'tools/list', 'mcp-name': 'catalog' },
      { ...headers },
    ]) {
      const { status } = await post(url, body, wrong)
      assert.equal(status, 400, JSON.stringify(wrong))
    }
    assert.equal((await post(url, body, { ...headers, 'mcp-name': 'catalog' })).status, 200)
  })

  test('a request to /mcp for an unknown tool or method gets an error of JSON-RPC that repeats nothing of it', async () => {
    const { url } = await start()
    for (const body of [
      message('tools/call', { name: 'hunter2', arguments: {} }),
      message('hunter2'),
    ]) {
      const { json, text } = await post(url, body)
      assert.ok(json.error, text)
      assert.doesNotMatch(text, /hunter2/)
    }
  })

  test('a request to /mcp gets a stream that no proxy collects, and none stays open for events that nobody has', async () => {
    const { url } = await start()
    const { headers, text } = await post(url, message('subscriptions/listen', {}))
    assert.ok(text.length > 0)
    const told = ['content-type', 'x-accel-buffering'].map((name) => headers.get(name))
    assert.deepEqual(told, ['text/event-stream', 'no'])
  })
})

suite('what a stranger sends to an inbox', () => {
  const start = shareServer()

  test('50 requests are listed in 8 KB, and a wait hands over many long ones in parts, none twice', async (t) => {
    const server = await start()
    const agent = await connect(t, server.url)
    const { publicId, ownerToken: token } = await anInbox(server, 'long')
    const body = '"<\u202e€'.repeat(4 * 1024)
    for (let i = 0; i < 50; i++) {
      await fetch(`${server.url}/c/${publicId}/${'%22'.repeat(100)}?${'q'.repeat(300)}`, {
        method: 'POST',
        body,
        headers: { 'content-type': `application/${'x'.repeat(100)}` },
      })
    }
    const list = await agent.call('read_inbox', { publicId, limit: 50 }, { token })
    const text = list.content[0]?.text ?? ''
    assert.ok(Buffer.byteLength(text) <= 8 * 1024, String(Buffer.byteLength(text)))
    assert.equal(text.match(/^#\d+ \S+ POST ".+\.\.\. ".+\.\.\. \d+ B "/gm)?.length, 50)
    const seen: number[] = []
    for (let after: unknown = 0; seen.length < 50; ) {
      const given = { publicId, after, maxTextBytes: 16 * 1024 }
      const result = await agent.call('wait_for_webhook', given, { token })
      assert.ok((result.content[0]?.text ?? '').length < 160 * 1024)
      const page = readIn(result)
      seen.push(...(page.webhooks as { sequence: number }[]).map(({ sequence }) => sequence))
      after = page.after
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 50 }, (_, i) => i + 1),
    )
  })

  test('a token that two parts of a body would show together is hidden in both', async (t) => {
    const server = await start()
    const agent = await connect(t, server.url)
    const { publicId, ownerToken: token } = await anInbox(server, 'long')
    await fetch(`${server.url}/c/${publicId}`, {
      method: 'POST',
      body: `${'x'.repeat(100)}${token}`,
    })
    let shown = ''
    for (let offset: unknown = 0; offset !== null; ) {
      const given = { publicId, sequence: 1, offset, maxTextBytes: 64 }
      const { body } = readIn(await agent.call('get_webhook', given, { token })).webhook as {
        body: { untrustedText: string; nextOffset: number | null }
      }
      shown += body.untrustedText
      offset = body.nextOffset
    }
    assert.equal(shown, `${'x'.repeat(100)}catch_owner_[hidden]`)
  })
})

suite('a secret at /mcp', () => {
  test('a secret at /mcp never reaches the content, an error or the log, whatever is called with it', async (t) => {
    const server = await startServer(t, { MAYFLY_LOG_LEVEL: 'trace' })
    const agent = await connect(t, server.url)
    const asked = await agent.call('buy_inbox', { planId: 'long' })
    const { purchaseId, quote } = purchaseIn(asked)
    const preimage = await server.pay(quote.bolt11)
    const meta = credentialOf(challengeIn(asked), preimage)
    const bought = await agent.call('buy_inbox', { planId: 'long' }, { meta })
    const { publicId, ownerToken, ingestToken } = capabilityIn<CatchCapability>(bought)
    await fetch(`${server.url}/c/${publicId}`, {
      headers: { authorization: `Bearer ${ingestToken}` },
    })
    for (const token of [ownerToken, ingestToken, `${ownerToken}x`, `${ownerToken}\n`]) {
      for (const name of ['read_inbox', 'monitor_status', 'ping', 'read_whisper', 'destroy']) {
        await agent.call(name, { publicId: name === 'destroy' ? 'catch_x' : publicId }, { token })
        await agent.call(name, { publicId: token }, { token }).catch(() => undefined)
      }
    }
    await agent.call('buy_inbox', { planId: 'long', purchaseId }, { meta })
    await agent.call('buy_inbox', { planId: 'spark', purchaseId }, { meta })
    await agent.call('read_inbox', { publicId, [ownerToken]: ownerToken })
    await agent.call(ownerToken).catch(() => undefined)
    for (const text of [...agent.seen, ...server.logged]) {
      assert.ok(!containsToken(text), text)
      assert.ok(!text.includes(preimage), text)
    }
    assert.ok(!server.logged.join().includes(purchaseId))
  })

  test('a secret that opens nothing at /mcp is refused like any such bearer, and counted by the caller', async (t) => {
    const server = await limited(t, { badBearer: { perMinute: 1, burst: 2 } })
    const agent = await connect(t, server.url)
    const token = 'catch_owner_0000000000000000000000000000000000000000000000000'
    const said: string[] = []
    for (let i = 0; i < 3; i++) {
      said.push(refusalIn(await agent.call('read_inbox', { publicId: 'catch_x' }, { token })))
    }
    assert.match(said[1] ?? '', /^unauthorized/)
    assert.match(said[2] ?? '', /^rate limited.*Retry after \d+ seconds/)
  })
})

suite('the limits of /mcp', () => {
  test('a client makes so many requests, fewer that declare too much, and its neighbours are not refused', async (t) => {
    const { url } = await startServer(t, {
      MAYFLY_RATE_LIMITS: await jsonFile(t, {
        mcp: { perMinute: 1, burst: 4 },
        mcpLong: { perMinute: 1, burst: 1 },
      }),
      MAYFLY_TRUSTED_PROXIES: '127.0.0.1',
    })
    const long = JSON.stringify({ x: 'x'.repeat(70_000) })
    for (const [address, body, expected] of [
      ['192.0.2.1', long, 400],
      ['192.0.2.1', long, 429],
      ['192.0.2.2', long, 400],
      ['192.0.2.1', PING, 200],
      ['192.0.2.1', PING, 200],
      ['192.0.2.1', PING, 429],
      ['192.0.2.2', PING, 200],
    ] as const) {
      const { status } = await post(url, body, { 'x-forwarded-for': address })
      assert.equal(status, expected, `${address} ${body.slice(0, 20)}`)
    }
  })

  test('orders count for the network of the caller, as over HTTP', async (t) => {
    const rates = await jsonFile(t, { quote: { perMinute: 1, burst: 1 } })
    const { url } = await startServer(t, {
      MAYFLY_RATE_LIMITS: rates,
      MAYFLY_TRUSTED_PROXIES: '127.0.0.1',
    })
    const at = async (address: string): Promise<Result> => {
      const agent = await connect(t, url, { headers: { 'x-forwarded-for': address } })
      return agent.call('buy_inbox', { planId: 'spark' })
    }
    assert.ok(purchaseIn(await at('192.0.2.1')))
    assert.match(refusalIn(await at('192.0.2.9')), /^rate limited/)
    assert.ok(purchaseIn(await at('198.51.100.1')))
  })

  test('nothing is at /mcp with MAYFLY_MCP=off, and no document speaks of it', async (t) => {
    const { url } = await startServer(t, { MAYFLY_MCP: 'off' })
    assert.equal((await post(url, PING)).status, 404)
    assert.equal((await fetch(`${url}/mcp/server-card`)).status, 404)
    for (const path of ['/llms.txt', '/.well-known/ai-catalog.json']) {
      assert.doesNotMatch(await (await fetch(url + path)).text(), /mcp/)
    }
  })
})

/** An object of this many levels. */
function nested(levels: number): object {
  let value: object = {}
  for (let i = 1; i < levels; i++) value = { value }
  return value
}
