import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { suite, type TestContext, test } from 'node:test'
import { type Ask, purchase, quoteOf } from '../support/buying.ts'
import { limited } from '../support/limits.ts'
import { scrape } from '../support/scrape.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { exchange } from '../support/socket.ts'
import { until } from '../support/until.ts'
import { L402, openOrderVia, PAYMENT, paidOrderVia } from '../support/wallet-flow.ts'

const MIB = 1024 * 1024
const LARGEST = 8 * MIB
const PROXY = { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' }

const aWhisper = (bytes: number): Ask => ({
  target: '/api/payments/whisper',
  // Text, since it goes through a string.
  body: randomBytes(bytes / 2).toString('hex'),
  headers: { 'content-type': 'application/octet-stream', 'x-whisper-plan': 'long' },
})

const headOf = (bytes: number, key: string = randomUUID(), rest = ''): string =>
  `POST /api/payments/whisper HTTP/1.1\r\nHost: x\r\nIdempotency-Key: ${key}\r\nX-Whisper-Plan: long\r\nContent-Type: application/octet-stream\r\nContent-Length: ${bytes}\r\n${rest}\r\n`

suite('a client that fills the room for new secrets with bodies that do not end', () => {
  test('a client that fills the room for new secrets keeps nobody from buying, nor from what is paid', async (t) => {
    const server = await startServer(t, { ...PROXY, MAYFLY_METRICS_PORT: '0' })
    const [l402, payment] = [
      await paidOrderVia(server, L402, aWhisper(LARGEST)),
      await paidOrderVia(server, PAYMENT, aWhisper(LARGEST)),
    ]
    const proven = await openOrderVia(server, L402, aWhisper(LARGEST))
    const known = { ...aWhisper(LARGEST), key: randomUUID() }
    const quote = quoteOf(await purchase(server, known))
    // Sixteen of a byte too few, from four networks.
    for (let i = 0; i < 16; i++) await aSlowBody(t, server, `203.${i % 4}.113.7`)
    await until('the room is full', async () => {
      const { series } = await scrape(server)
      return Number(series.get('mayfly_reserved_bytes{kind="unpaid"}')) > 56 * MIB
    })
    for (const target of ['/api/payments/catch', '/api/payments/pulse']) {
      assert.equal((await purchase(server, { target, from: '192.0.2.1' })).status, 402, target)
      // Also from where the slow ones come.
      assert.equal((await purchase(server, { target, from: '203.0.113.7' })).status, 402, target)
    }
    for (const { ask } of [l402, payment, proven]) {
      assert.equal((await purchase(server, { ...ask, from: '203.0.113.7' })).status, 200)
    }
    assert.equal(
      quoteOf(await purchase(server, { ...known, from: '192.0.2.1' })).bolt11,
      quote.bolt11,
    )
    const newcomer = await purchase(server, { ...aWhisper(LARGEST), from: '192.0.2.1' })
    assert.equal(newcomer.status, 402, newcomer.text)
  })
})

suite('the limit on new orders', () => {
  test('the limit on new orders is asked before a body is read, and a repeat of a known order does not draw on it', async (t) => {
    const server = await limited(t, { quote: { perMinute: 1, burst: 2 } })
    const order = await openOrderVia(server, L402, aWhisper(1024))
    for (let i = 0; i < 3; i++) {
      const { body, headers, target, key } = { ...order.ask }
      assert.equal((await purchase(server, { body, headers, target, key } as Ask)).status, 402)
    }
    assert.equal((await purchase(server, aWhisper(1024))).status, 402)
    const refused = await exchange(server.url, headOf(LARGEST, randomUUID(), CLOSE))
    assert.deepEqual(refused.statuses, [429], 'without its body')
    assert.ok(Number(refused.headers.get('retry-after')) > 0)
    // What is paid never meets it.
    assert.equal((await purchase(server, order.ask)).status, 200)
    assert.equal((await purchase(server, order.ask)).status, 200)
  })

  test('who may open no order is told before a body is read, and what is paid is taken from there', async (t) => {
    const server = await startServer(t, { ...PROXY, MAYFLY_BLOCKED_NETWORKS: '203.0.113.0/24' })
    const from = '203.0.113.7'
    const blocked = `X-Forwarded-For: ${from}\r\n${CLOSE}`
    const refused = await exchange(server.url, headOf(LARGEST, randomUUID(), blocked))
    assert.deepEqual(refused.statuses, [403], 'without its body')
    for (const flow of [L402, PAYMENT]) {
      const { ask } = await paidOrderVia(server, flow, aWhisper(1024))
      // Under a key of its own, as a program sends that makes one for each attempt.
      assert.equal((await purchase(server, { ...ask, from, key: randomUUID() })).status, 200)
    }
  })

  test('a ceiling on the sales of a day is asked before a body is read', async (t) => {
    const server = await startServer(t, { MAYFLY_MAX_SALES_PER_NETWORK_PER_DAY: '1' })
    server.awaitNoon()
    const { ask } = await paidOrderVia(server, L402, aWhisper(1024))
    assert.equal((await purchase(server, ask)).status, 200)
    const refused = await exchange(server.url, headOf(LARGEST, randomUUID(), CLOSE))
    assert.deepEqual(refused.statuses, [503], 'without its body')
  })

  test('the limit on new orders is not drawn on by a body that says that it is too large', async (t) => {
    const server = await limited(t, { quote: { perMinute: 1, burst: 1 } })
    const refused = await exchange(server.url, headOf(LARGEST + 1, randomUUID(), CLOSE))
    assert.deepEqual(refused.statuses, [400])
    assert.equal((await purchase(server, aWhisper(1024))).status, 402)
  })
})

test('a sender is told at once that a body is declared too large', async (t) => {
  const server = await startServer(t)
  for (const [what, head] of [
    ['a secret', headOf(LARGEST + 1, randomUUID(), 'Connection: close\r\n')],
    [
      'JSON',
      `POST /api/payments/catch HTTP/1.1\r\nHost: x\r\nIdempotency-Key: ${randomUUID()}\r\nContent-Type: application/json\r\nContent-Length: 5000\r\nConnection: close\r\n\r\n`,
    ],
    [
      'what is paid by the simulator',
      'POST /simulator/pay HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20000\r\nConnection: close\r\n\r\n',
    ],
  ] as const) {
    assert.deepEqual((await exchange(server.url, head)).statuses, [400], what)
  }
})

const CLOSE = 'Connection: close\r\n'

/** All but the last byte of the largest body. */
async function aSlowBody(t: TestContext, { url }: TestServer, from: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  socket.on('error', () => undefined)
  socket.write(headOf(LARGEST, randomUUID(), `X-Forwarded-For: ${from}\r\n`))
  socket.write(Buffer.alloc(LARGEST - 1))
  return socket
}
