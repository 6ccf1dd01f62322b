import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { PULSE_PLANS } from '../../src/pulse/schema.ts'
import { WHISPER_PLANS } from '../../src/whisper/schema.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { settled } from '../support/http.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { sendRaw } from '../support/socket.ts'
import { query } from '../support/store.ts'

const PURCHASE = '/api/payments/catch'
const SPARK = JSON.stringify({ planId: 'spark' })
const MINUTES_15 = 15 * 60 * 1000

test('the catalogue says exactly what is on sale', async (t) => {
  const server = await startServer(t)
  const answer = await fetch(`${server.url}/api/catalog`)
  assert.equal(answer.status, 200)
  assert.deepEqual(await answer.json(), {
    checkoutEnabled: true,
    currency: 'sat',
    products: {
      catch: {
        description:
          'A webhook inbox: any request sent to it is kept, exact to the byte, for its owner. Simulator: no real money moves.',
        plans: [
          {
            planId: 'spark',
            priceSats: 100,
            durationLabel: '24 hours',
            bestFor: 'Trying out one webhook',
            available: true,
            requestLimit: 100,
            storageLimitBytes: 5_242_880,
            maxBytesPerRequest: 65_536,
          },
          {
            planId: 'standard',
            priceSats: 400,
            durationLabel: '7 days',
            bestFor: 'A week of building an integration',
            available: true,
            requestLimit: 1_000,
            storageLimitBytes: 52_428_800,
            maxBytesPerRequest: 262_144,
          },
          {
            planId: 'long',
            priceSats: 900,
            durationLabel: '30 days',
            bestFor: 'A month of real traffic',
            available: true,
            requestLimit: 10_000,
            storageLimitBytes: 262_144_000,
            maxBytesPerRequest: 1_048_576,
          },
        ],
      },
      whisper: {
        description:
          'Bytes that were encrypted before they came here, read a bounded number of times, from a set time on. Simulator: no real money moves.',
        clientEncryption: 'AES-256-GCM',
        plans: Object.values(WHISPER_PLANS).map(({ durationSeconds: _, ...shown }) => shown),
      },
      pulse: {
        description:
          'A heartbeat monitor: it knows when a job that should ping it has stopped. Simulator: no real money moves.',
        plans: Object.values(PULSE_PLANS).map(({ durationSeconds: _, ...shown }) => shown),
      },
    },
  })
})

test('a quote has exactly the documented members, and its invoice says the same', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const answer = await purchase(server, { key, body: JSON.stringify({ planId: 'standard' }) })
  assert.equal(answer.status, 402)
  const quote = JSON.parse(answer.text)
  assert.match(quote.orderId, /^order_[0-9A-Za-z]{22}$/)
  const invoice = decodeInvoice(quote.bolt11)
  assert.deepEqual(quote, {
    orderId: quote.orderId,
    product: 'catch',
    planId: 'standard',
    amountSats: 400,
    bolt11: invoice.bolt11,
    paymentHash: invoice.paymentHash,
    expiresAt: `${new Date(invoice.expiresAt).toISOString().slice(0, 19)}Z`,
    network: 'regtest',
  })
  assert.equal(invoice.network, 'regtest')
  assert.equal(invoice.amountMsat, 400_000)
  assert.equal(invoice.expiresAt % 1000, 0)
  assert.equal(invoice.expirySeconds * 1000, MINUTES_15)
})

test('an invoice names product and plan, and neither order nor key', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const quote = await aQuote(server, { key })
  const { description } = decodeInvoice(quote.bolt11)
  assert.equal(description, 'Mayfly CATCH spark')
})

test('a native 402 carries no challenge, is not cached and may be read by any page', async (t) => {
  const server = await startServer(t)
  const { headers } = await purchase(server, {})
  assert.equal(headers.get('www-authenticate'), null)
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
  assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  assert.equal(headers.get('access-control-allow-origin'), '*')
  assert.equal(
    headers.get('access-control-expose-headers'),
    'WWW-Authenticate, Payment-Receipt, Gate-Receipt, Retry-After, RateLimit, RateLimit-Policy',
  )
})

test('the life of a quote is the configured one', async (t) => {
  const server = await startServer(t, { MAYFLY_QUOTE_SECONDS: '60' })
  const { bolt11 } = await aQuote(server, {})
  assert.equal(decodeInvoice(bolt11).expirySeconds, 60)
})

test('refuses every broken purchase before there is an order or an invoice', async (t) => {
  const server = await startServer(t)
  const cases: [note: string, ask: Ask, error: string][] = [
    ['no key', { key: null }, 'invalid idempotency key'],
    ['an empty key', { key: '' }, 'invalid idempotency key'],
    ['a key of 7 characters', { key: 'seven-7' }, 'invalid idempotency key'],
    ['a key of 129 characters', { key: 'k'.repeat(129) }, 'invalid idempotency key'],
    ['a tab in the key', { key: 'order\t0001' }, 'invalid idempotency key'],
    ['a key beyond ASCII', { key: 'commandé-0001' }, 'invalid idempotency key'],
    ['an unknown plan', { body: '{"planId":"mega"}' }, 'invalid plan'],
    ['a plan in another case', { body: '{"planId":"Spark"}' }, 'invalid plan'],
    ['a plan that every object has', { body: '{"planId":"__proto__"}' }, 'invalid plan'],
    ['a method that every object has', { body: '{"planId":"constructor"}' }, 'invalid plan'],
    ['no plan', { body: '{}' }, 'invalid request body'],
    ['a plan that is no text', { body: '{"planId":1}' }, 'invalid request body'],
    ['a plan in a list', { body: '{"planId":["spark"]}' }, 'invalid request body'],
    ['an extra property', { body: '{"planId":"spark","x":1}' }, 'invalid request body'],
    ['a list', { body: '["spark"]' }, 'invalid request body'],
    ['null', { body: 'null' }, 'invalid request body'],
    ['a bare string', { body: '"spark"' }, 'invalid request body'],
    ['an empty body', { body: '' }, 'invalid request body'],
    ['broken JSON', { body: '{"planId":"spark"' }, 'invalid request body'],
    ['two JSON texts', { body: `${SPARK}${SPARK}` }, 'invalid request body'],
    ['a byte order mark', { body: `\ufeff${SPARK}` }, 'invalid request body'],
    [
      'bytes that are not UTF-8',
      { body: Buffer.from('{"planId":"spark\xff"}', 'latin1') },
      'invalid request body',
    ],
    ['UTF-16', { body: Buffer.from(SPARK, 'utf16le') }, 'invalid request body'],
    ['no content type', { headers: { 'content-type': '' } }, 'unsupported media type'],
    ['plain text', { headers: { 'content-type': 'text/plain' } }, 'unsupported media type'],
    [
      'a form',
      { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'planId=spark' },
      'unsupported media type',
    ],
    [
      'a multipart body',
      {
        headers: { 'content-type': 'multipart/form-data; boundary=x' },
        body: '--x\r\ncontent-disposition: form-data; name="planId"\r\n\r\nspark\r\n--x--\r\n',
      },
      'unsupported media type',
    ],
    [
      'a type that only begins like JSON',
      { headers: { 'content-type': 'application/json-patch+json' } },
      'unsupported media type',
    ],
    ['a coded body', { headers: { 'content-encoding': 'gzip' } }, 'unsupported media type'],
    [
      'a body above its limit',
      { body: `{"planId":"spark"${' '.repeat(5_000)}}` },
      'request too large',
    ],
    [
      'a body far above its limit',
      { body: `{"planId":"spark"${' '.repeat(1_000_000)}}` },
      'request too large',
    ],
    [
      'an unknown protocol',
      { headers: { 'x-payment-protocol': 'barter' } },
      'unknown payment protocol',
    ],
    ['an empty protocol', { headers: { 'x-payment-protocol': '' } }, 'unknown payment protocol'],
  ]
  for (const [note, ask, error] of cases) {
    const answer = await purchase(server, ask)
    assert.deepEqual([answer.status, answer.text], [400, JSON.stringify({ error })], note)
  }
  await assertNothingHappened(server)
})

test('refuses what no HTTP client would send, before there is an order or an invoice', async (t) => {
  const server = await startServer(t)
  const length = `Content-Length: ${SPARK.length}`
  const json = 'Content-Type: application/json'
  const chunked = `${json}\r\nTransfer-Encoding: chunked`
  const one = `Idempotency-Key: ${randomUUID()}`
  const other = `Idempotency-Key: ${randomUUID()}`
  const cases: [note: string, headers: string, body: string, error: string][] = [
    ['two keys', `${one}\r\n${other}\r\n${json}\r\n${length}`, SPARK, 'invalid idempotency key'],
    ['a key twice', `${one}\r\n${one}\r\n${json}\r\n${length}`, SPARK, 'invalid idempotency key'],
    [
      'a control character in the key',
      `Idempotency-Key: order\u0001-0001\r\n${json}\r\n${length}`,
      SPARK,
      'invalid request body',
    ],
    [
      'an oversized chunked body',
      `${one}\r\n${chunked}`,
      `1388\r\n${' '.repeat(5_000)}\r\n0\r\n\r\n`,
      'request too large',
    ],
    [
      'a far oversized chunked body',
      `${one}\r\n${chunked}`,
      `F4240\r\n${' '.repeat(1_000_000)}\r\n0\r\n\r\n`,
      'request too large',
    ],
    ['a broken chunk', `${one}\r\n${chunked}`, 'zz\r\n{}\r\n0\r\n\r\n', 'invalid request body'],
    [
      'two lengths',
      `${one}\r\n${json}\r\n${length}\r\nContent-Length: 1`,
      SPARK,
      'invalid request body',
    ],
    ['a length and chunks', `${one}\r\n${chunked}\r\n${length}`, SPARK, 'invalid request body'],
    ['a body without a type', `${one}\r\n${length}`, SPARK, 'unsupported media type'],
  ]
  for (const [note, headers, body, error] of cases) {
    const answer = await sendRaw(
      server.url,
      `POST ${PURCHASE} HTTP/1.1\r\nHost: mayfly\r\nConnection: close\r\n${headers}\r\n\r\n${body}`,
    )
    assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/, note)
    assert.equal(answer.split('\r\n\r\n')[1], JSON.stringify({ error }), note)
  }
  await assertNothingHappened(server)
})

test('takes keys of 8 and of 128 characters, and spaces inside one', async (t) => {
  const server = await startServer(t)
  for (const key of ['8-visibl', 'k'.repeat(128), 'my first order']) {
    assert.equal((await purchase(server, { key })).status, 402, key)
  }
})

test('takes JSON with a charset, in any case, and a body that says it is not coded', async (t) => {
  const server = await startServer(t)
  for (const headers of [
    { 'content-type': 'application/json; charset=utf-8' },
    { 'content-type': 'Application/JSON' },
    { 'content-encoding': 'identity' },
  ]) {
    assert.equal((await purchase(server, { headers })).status, 402)
  }
})

test('the same key and request are the same quote, to the byte, and one invoice', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const first = await purchase(server, { key })
  const again = await purchase(server, { key })
  assert.equal(again.status, 402)
  assert.equal(again.text, first.text)
  assert.deepEqual(await count(server), { orders: 1, invoices: 1 })
})

test('a key is spent on its request: another plan or another body is refused', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const quote = await aQuote(server, { key })
  const reused = JSON.stringify({ error: 'idempotency key reused with a different request' })
  const bodies = ['{"planId":"long"}', '{ "planId": "spark" }']
  for (const body of bodies) {
    const answer = await purchase(server, { key, body })
    assert.deepEqual([answer.status, answer.text], [400, reused])
  }
  assert.deepEqual(await count(server), { orders: 1, invoices: 1 })

  await payAndSettle(server, quote)
  assert.equal((await purchase(server, { key })).status, 200)
  for (const body of bodies) {
    const answer = await purchase(server, { key, body })
    assert.deepEqual([answer.status, answer.text], [400, reused], 'after the delivery too')
  }
})

test('a broken repeat is refused as such, whatever its key once bought', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  await aQuote(server, { key })
  const answer = await purchase(server, { key, body: '{"planId":"mega"}' })
  assert.equal(answer.text, '{"error":"invalid plan"}')
})

test('50 purchases at once with one key are one order and one invoice', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const answers = await Promise.all(Array.from({ length: 50 }, () => purchase(server, { key })))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([402]))
  assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
  assert.deepEqual(await count(server), { orders: 1, invoices: 1 })
})

test('of 50 different requests at once with one key, one plan wins and the other is refused', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  const plans = Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? 'spark' : 'long'))
  const answers = await Promise.all(
    plans.map((planId) => purchase(server, { key, body: JSON.stringify({ planId }) })),
  )
  const quotes = answers.filter(({ status }) => status === 402)
  assert.equal(quotes.length, 25)
  assert.equal(new Set(quotes.map(({ text }) => text)).size, 1)
  assert.equal(answers.filter(({ status }) => status === 400).length, 25)
  assert.deepEqual(await count(server), { orders: 1, invoices: 1 })
})

test('50 purchases at once with keys of their own are 50 orders and 50 invoices', async (t) => {
  const server = await startServer(t)
  const answers = await Promise.all(Array.from({ length: 50 }, () => aQuote(server, {})))
  assert.equal(new Set(answers.map(({ orderId }) => orderId)).size, 50)
  assert.equal(new Set(answers.map(({ paymentHash }) => paymentHash)).size, 50)
  assert.deepEqual(await count(server), { orders: 50, invoices: 50 })
})

test('a stranger does not reach an order by guessing its key', async (t) => {
  const server = await startServer(t, { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' })
  const weak = [
    'order-01',
    'order-2026-0001-customer-7',
    '0123456789abcdef0123456789abcde',
    'abcdefghijklmnopqrstuvwxyz',
    'Aa1Aa1Aa1Aa1Aa1Aa1Aa1',
    '12345678-1234-1234-1234-12345678901',
    'Aa1 Aa1 Aa1 Aa1 Aa1 Aa1 Aa1',
  ]
  for (const key of weak) {
    const mine = await aQuote(server, { key, from: '203.0.113.1' })
    const theirs = await aQuote(server, { key, from: '203.0.113.2' })
    assert.notEqual(mine.orderId, theirs.orderId, key)
    const again = await aQuote(server, { key, from: '203.0.113.1' })
    assert.deepEqual(again, mine, key)
  }
})

test('a key that nobody can guess reaches its order from any address', async (t) => {
  const server = await startServer(t, { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' })
  const strong = [
    randomUUID(),
    randomUUID().toUpperCase(),
    'd41d8cd98f00b204e9800998ecf8427e',
    'Aa1_-Aa1_-Aa1_-Aa1_-Aa',
  ]
  for (const key of strong) {
    const here = await aQuote(server, { key, from: '203.0.113.1' })
    const there = await aQuote(server, { key, from: '2001:db8::1' })
    assert.deepEqual(there, here, key)
  }
})

test('an IPv6 buyer keeps a guessable key within a /64, however the address is spelled', async (t) => {
  const server = await startServer(t, { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' })
  const key = 'order-01'
  const here = await aQuote(server, { key, from: '2001:db8:0:1::1' })
  const sameNetwork = await aQuote(server, { key, from: '2001:0DB8:0000:0001:aaaa:bbbb:cccc:dddd' })
  const nextNetwork = await aQuote(server, { key, from: '2001:db8:0:2::1' })
  assert.equal(sameNetwork.orderId, here.orderId)
  assert.notEqual(nextNetwork.orderId, here.orderId)
})

test('a plan that is not on sale is refused, and sold as soon as it is', async (t) => {
  const file = await aCatalog(t, { catch: { spark: { available: false } } })
  const server = await startServer(t, { MAYFLY_CATALOG: file })
  const key = randomUUID()
  const refused = await purchase(server, { key })
  assert.deepEqual([refused.status, refused.text], [400, '{"error":"invalid plan"}'])
  await assertNothingHappened(server)
  const { products } = await server.mayfly.catalog()
  assert.deepEqual(
    products.catch.plans.map(({ planId, available }) => [planId, available]),
    [
      ['spark', false],
      ['standard', true],
      ['long', true],
    ],
  )
  await writeFile(file, '{}')
  await server.restart()
  assert.equal((await purchase(server, { key })).status, 402)
})

test('an order keeps its plan and price when the catalogue changes under it', async (t) => {
  const file = await aCatalog(t, {})
  const server = await startServer(t, { MAYFLY_CATALOG: file })
  const key = randomUUID()
  const first = await purchase(server, { key })
  const spark = { priceSats: 999, durationSeconds: 60, requestLimit: 1, storageLimitBytes: 1 }
  await writeFile(file, JSON.stringify({ catch: { spark: { ...spark, available: false } } }))
  await server.restart()

  const repeated = await purchase(server, { key })
  assert.equal(repeated.text, first.text)
  await payAndSettle(server, JSON.parse(repeated.text))
  const { resource } = JSON.parse((await purchase(server, { key })).text)
  const status = await server.mayfly.catch(resource).status()
  assert.equal(status.requestLimit, 100)
  assert.equal(status.storageLimitBytes, 5_242_880)
  assert.equal(Date.parse(status.expiresAt) - Date.parse(status.createdAt), 24 * 60 * 60 * 1000)
})

test('a node that fails makes no order: the same key buys when it is back', async (t) => {
  const server = await startServer(t)
  const key = randomUUID()
  // A key that signs nothing.
  await query(server, `update meta set value = '' where name = 'simulator_key'`)
  await server.restart()
  const answer = await purchase(server, { key })
  assert.deepEqual([answer.status, answer.text], [503, '{"error":"checkout unavailable"}'])
  assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  assert.equal(answer.headers.get('www-authenticate'), null)
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  await assertNothingHappened(server)
  await query(server, `delete from meta where name = 'simulator_key'`)
  await server.restart()
  assert.equal((await purchase(server, { key })).status, 402)
})

test('the simulator pays an invoice of its own once, and gives the preimage again when asked again', async (t) => {
  const server = await startServer(t)
  const { bolt11, paymentHash } = await aQuote(server, {})
  const paid = await pay(server, { bolt11 })
  assert.equal(paid.status, 200)
  const body = JSON.parse(paid.text)
  assert.match(body.preimage, /^[0-9a-f]{64}$/)
  assert.deepEqual(body, { preimage: body.preimage, paymentHash })
  const again = await pay(server, { bolt11 })
  assert.deepEqual([again.status, again.text], [200, paid.text])
  server.clock.advance(60 * 60 * 1000)
  assert.deepEqual((await pay(server, { bolt11 })).text, paid.text)
})

test('50 payments of one invoice at once all get the one preimage', async (t) => {
  const server = await startServer(t)
  const { bolt11 } = await aQuote(server, {})
  const answers = await Promise.all(Array.from({ length: 50 }, () => pay(server, { bolt11 })))
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
})

test('the simulator takes an invoice in the upper case of a QR code', async (t) => {
  const server = await startServer(t)
  const { bolt11 } = await aQuote(server, {})
  assert.equal((await pay(server, { bolt11: bolt11.toUpperCase() })).status, 200)
})

test('the simulator does not pay what has expired', async (t) => {
  const server = await startServer(t)
  const { bolt11 } = await aQuote(server, {})
  server.clock.advance(MINUTES_15)
  const late = await pay(server, { bolt11 })
  assert.deepEqual([late.status, late.text], [400, '{"error":"invoice expired"}'])
})

test("the simulator does not know somebody else's invoice, nor what is none", async (t) => {
  const server = await startServer(t)
  const other = await startServer(t)
  const { bolt11: foreign } = await aQuote(other, {})
  const { bolt11 } = await aQuote(server, {})
  for (const text of [foreign, 'lnbcrt1', 'x', `${bolt11}q`, `lightning:${bolt11}`, '\u0000']) {
    const answer = await pay(server, { bolt11: text })
    assert.deepEqual([answer.status, answer.text], [404, '{"error":"not found"}'], text)
  }
})

test('the simulator takes one invoice in one member, and nothing else', async (t) => {
  const server = await startServer(t)
  const { bolt11 } = await aQuote(server, {})
  for (const body of [{}, { bolt11: 1 }, { bolt11: '' }, { bolt11, x: 1 }, [bolt11], null]) {
    const answer = await pay(server, body)
    assert.deepEqual([answer.status, answer.text], [400, '{"error":"invalid request body"}'])
  }
  const tooLong = await pay(server, { bolt11: 'l'.repeat(4097) })
  assert.equal(tooLong.text, '{"error":"invalid request body"}')
  const tooLarge = await pay(server, { bolt11: 'l'.repeat(20_000) })
  assert.deepEqual([tooLarge.status, tooLarge.text], [400, '{"error":"request too large"}'])
  const broken = await fetch(`${server.url}/simulator/pay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"bolt11":',
  })
  assert.deepEqual([broken.status, await broken.text()], [400, '{"error":"invalid request body"}'])
  assert.equal((await pay(server, { bolt11 })).status, 200, 'none of them paid it')
})

type Ask = {
  /** Default: a fresh one. Null: none. */
  key?: string | null
  body?: string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
  /** The address that a trusted proxy reports. */
  from?: string
}

type Answer = { status: number; headers: Headers; text: string }

async function purchase(server: TestServer, ask: Ask): Promise<Answer> {
  const { key = randomUUID(), body = SPARK, from } = ask
  const answer = await fetch(server.url + PURCHASE, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key === null ? {} : { 'idempotency-key': key }),
      ...(from === undefined ? {} : { 'x-forwarded-for': from }),
      ...ask.headers,
    },
    body,
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

type Quote = { orderId: string; bolt11: string; paymentHash: string }

async function aQuote(server: TestServer, ask: Ask): Promise<Quote> {
  const answer = await purchase(server, ask)
  assert.equal(answer.status, 402, answer.text)
  return JSON.parse(answer.text)
}

/** Pays, and waits until the server says that the order is settled. */
async function payAndSettle(server: TestServer, quote: Quote): Promise<void> {
  const settlement = settled(server)
  await server.pay(quote.bolt11)
  await settlement
}

async function pay(server: TestServer, body: unknown): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${server.url}/simulator/pay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: answer.status, text: await answer.text() }
}

async function count(server: TestServer): Promise<{ orders: number; invoices: number }> {
  const rows = async (table: string): Promise<number> =>
    Number((await query(server, `select count(*) as n from ${table}`))[0]?.n)
  return { orders: await rows('purchase_order'), invoices: await rows('simulator_invoice') }
}

async function assertNothingHappened(server: TestServer): Promise<void> {
  assert.deepEqual(await count(server), { orders: 0, invoices: 0 })
}

async function aCatalog(t: After, plans: unknown): Promise<string> {
  const file = join(await temporaryFolder(t), 'catalog.json')
  await writeFile(file, JSON.stringify(plans))
  return file
}
