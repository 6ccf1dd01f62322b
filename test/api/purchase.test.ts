import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import {
  type Ask,
  assertNothingHappened,
  books,
  MINUTE,
  openOrder,
  PURCHASE,
  purchase,
  SPARK,
} from '../support/buying.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { sendRaw } from '../support/socket.ts'
import { query } from '../support/store.ts'

suite('a purchase', () => {
  const theServer = shareServer()

  test('a quote has exactly the documented members, and its invoice says the same', async () => {
    const server = await theServer()
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
      priceSats: 400,
      bolt11: invoice.bolt11,
      paymentHash: invoice.paymentHash,
      expiresAt: `${new Date(invoice.expiresAt).toISOString().slice(0, 19)}Z`,
      network: 'regtest',
    })
    assert.equal(invoice.network, 'regtest')
    assert.equal(invoice.amountMsat, 400_000)
    assert.equal(invoice.description, 'Mayfly CATCH standard', 'neither order nor key')
    assert.equal(invoice.expiresAt % 1000, 0)
    assert.equal(invoice.expirySeconds * 1000, 15 * MINUTE)
  })

  test('a quote lives as long as the setting says', async (t) => {
    const server = await startServer(t, { MAYFLY_QUOTE_SECONDS: '60' })
    const { bolt11 } = await openOrder(server, {})
    assert.equal(decodeInvoice(bolt11).expirySeconds, 60)
  })

  test('every broken purchase is refused before there is an order or an invoice', async (t) => {
    const server = await startServer(t)
    const cases: [note: string, ask: Ask, error: string][] = [
      ['no key', { key: null }, 'invalid idempotency key'],
      ['an empty key', { key: '' }, 'invalid idempotency key'],
      ['a key beyond ASCII', { key: 'commandé-0001' }, 'invalid idempotency key'],
      ['an unknown plan', { body: '{"planId":"mega"}' }, 'invalid plan'],
      ['a plan in another case', { body: '{"planId":"Spark"}' }, 'invalid plan'],
      ['a plan that every object has', { body: '{"planId":"__proto__"}' }, 'invalid plan'],
      ['a method that every object has', { body: '{"planId":"constructor"}' }, 'invalid plan'],
      ['no plan', { body: '{}' }, 'invalid request body'],
      ['a plan that is no text', { body: '{"planId":1}' }, 'invalid request body'],
      ['a plan in a list', { body: '{"planId":["spark"]}' }, 'invalid request body'],
      ['an extra property', { body: '{"planId":"spark","x":1}' }, 'invalid request body'],
      ['a plan twice', { body: '{"planId":"spark","planId":"spark"}' }, 'invalid request body'],
      [
        'a plan twice, once escaped',
        { body: '{"planId":"spark","plan\\u0049d":"long"}' },
        'invalid request body',
      ],
      ['a list', { body: '["spark"]' }, 'invalid request body'],
      ['an empty body', { body: '' }, 'invalid request body'],
      ['broken JSON', { body: '{"planId":"spark"' }, 'invalid request body'],
      ['a byte order mark', { body: `\ufeff${SPARK}` }, 'invalid request body'],
      [
        'bytes that are not UTF-8',
        { body: Buffer.from('{"planId":"spark\xff"}', 'latin1') },
        'invalid request body',
      ],
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

  test('a request that no HTTP client would send is refused before there is an order or an invoice', async (t) => {
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
        'an oversized chunked body',
        `${one}\r\n${chunked}`,
        `1388\r\n${' '.repeat(5_000)}\r\n0\r\n\r\n`,
        'request too large',
      ],
      ['a broken chunk', `${one}\r\n${chunked}`, 'zz\r\n{}\r\n0\r\n\r\n', 'invalid request body'],
      ['a body without a type', `${one}\r\n${length}`, SPARK, 'unsupported media type'],
    ]
    for (const [note, headers, sent, error] of cases) {
      const answer = await sendRaw(
        server.url,
        `POST ${PURCHASE} HTTP/1.1\r\nHost: mayfly\r\nConnection: close\r\n${headers}\r\n\r\n${sent}`,
      )
      assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/, note)
      const body = JSON.parse(answer.split('\r\n\r\n')[1] ?? '')
      assert.equal(body.error, error, note)
    }
    await assertNothingHappened(server)
  })

  test('a purchase may be JSON with a charset, in any case, not coded, and its key has 8 to 128 characters, spaces among them', async () => {
    const server = await theServer()
    for (const headers of [
      { 'content-type': 'application/json; charset=utf-8' },
      { 'content-type': 'Application/JSON' },
      { 'content-encoding': 'identity' },
    ]) {
      assert.equal((await purchase(server, { headers })).status, 402)
    }
    for (const key of ['8-visibl', 'k'.repeat(128), 'my first order']) {
      assert.equal((await purchase(server, { key })).status, 402, key)
    }
  })

  test('one plan wins where 50 different requests come at once with one key, and the other is refused', async (t) => {
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
    assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 0, inboxes: 0 })
  })

  test('a node that fails makes no order: the same key buys when it is back', async (t) => {
    const server = await startServer(t)
    const key = randomUUID()
    // A byte too short to sign with, and long enough to start with.
    await query(server, `update meta set value = $1 where name = 'simulator_key'`, '01'.repeat(31))
    await server.restart()
    const answer = await purchase(server, { key })
    assert.deepEqual([answer.status, answer.text], [503, '{"error":"checkout unavailable"}'])
    assert.match(answer.header('retry-after') ?? '', /^[1-9]\d*$/)
    assert.equal(answer.header('www-authenticate'), null)
    assert.equal(answer.header('cache-control'), 'no-store')
    await assertNothingHappened(server)
    await query(server, `delete from meta where name = 'simulator_key'`)
    await server.restart()
    assert.equal((await purchase(server, { key })).status, 402)
  })
})
