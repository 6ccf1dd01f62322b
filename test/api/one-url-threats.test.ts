/** What a thief, a routing node, a browser or a greedy client tries with a purchase that is one URL. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import { books, openOrder, paymentChallengeOf, poll, purchase, quoteOf } from '../support/buying.ts'
import { jsonFile } from '../support/folder.ts'
import { limited } from '../support/limits.ts'
import {
  assertFresh,
  BUY,
  FLOWS,
  look,
  offerOf,
  opened,
  paid,
  rowOf,
  SCHEMES,
} from '../support/one-url.ts'
import { paymentAuthorization } from '../support/payer.ts'
import { startServer } from '../support/server.ts'
import {
  assertError,
  capabilityOf,
  L402,
  PAYMENT,
  paidOrderVia,
  startShop,
} from '../support/wallet-flow.ts'

suite('threats to a purchase of one URL', () => {
  test('a stranger who learned the order id collects nothing: no poll, key or preimage delivers it', async (t) => {
    const server = await startServer(t)
    const order = await opened(server)
    const { order_id } = await rowOf(server, order)
    const orderId = String(order_id)
    const preimage = { 'payment-preimage': order.preimage }
    const key = { 'idempotency-key': randomUUID() }
    const tryAll = async () => {
      for (const headers of [{}, preimage]) {
        const answer = await poll(server, orderId, headers)
        assert.ok([402, 404].includes(answer.status), answer.text)
        assert.ok(!answer.text.includes('resource'))
      }
      for (const headers of [key, { ...key, ...preimage }]) {
        assertError(await poll(server, orderId, headers), '404 order not found')
      }
      for (const headers of [{}, key, preimage, { ...key, ...preimage }]) {
        assertFresh(await look(server, { headers }), order)
      }
      const { delivered_at } = await rowOf(server, order)
      assert.equal(delivered_at, null)
    }
    await tryAll()
    await server.pay(order.bolt11)
    await tryAll()
    capabilityOf(await look(server, { authorization: order.authorization }))
    for (const headers of [{}, preimage]) {
      assertError(await poll(server, orderId, headers), '404 proof of payment required')
    }
  })

  test('a node on the way of the payment knows the preimage, and gets nothing for it', async (t) => {
    const server = await startShop(t)
    const order = await opened(server)
    const challenge = { ...paymentChallengeOf(order.challenge), id: 'A'.repeat(43) }
    const payload = { preimage: order.preimage }
    const forged = paymentAuthorization({ challenge, payload })
    for (const method of ['GET', 'POST', 'HEAD'] as const) {
      const answer = await look(server, { method, authorization: forged })
      assert.equal(answer.status, 401)
      assert.deepEqual(answer.lines('www-authenticate'), ['Payment realm="localhost"'])
    }
    const { state, delivered_at } = await rowOf(server, order)
    assert.deepEqual([state, delivered_at], ['settled', null])
    capabilityOf(await look(server, { authorization: order.authorization }))
  })

  test('a wallet in a browser pays for an image: what a browser loads by itself gets no invoice', async (t) => {
    const server = await startServer(t)
    const refused: Record<string, string>[] = [
      { 'sec-purpose': 'prefetch' },
      { 'sec-purpose': 'prefetch;prerender' },
      { 'sec-purpose': 'prefetch', 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'empty' },
      { 'sec-fetch-site': 'cross-site' },
      ...['image', 'iframe', 'document', 'script', 'video', ''].map((dest) => ({
        'sec-fetch-site': 'cross-site',
        'sec-fetch-dest': dest,
      })),
    ]
    for (const headers of refused) {
      for (const method of ['GET', 'HEAD', 'POST'] as const) {
        for (const target of [BUY, `${BUY}/l402`]) {
          const answer = await look(server, { method, target, headers })
          assert.equal(answer.status, 403, JSON.stringify(headers))
          assert.deepEqual(answer.lines('www-authenticate'), [])
          if (method !== 'HEAD') assertError(answer, '403 cross-site request refused')
        }
      }
    }
    assert.equal((await books(server)).orders, 0)
    const meant: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'empty' },
      { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'image' },
      { 'sec-fetch-site': 'none', 'sec-fetch-dest': 'document' },
      { 'sec-fetch-mode': 'cors' },
    ]
    for (const headers of meant) assert.equal((await look(server, { headers })).status, 402)
    const order = await paid(server)
    const [headers = {}] = refused
    const { authorization } = order
    assert.equal((await look(server, { headers, authorization })).status, 403)
    assert.equal((await rowOf(server, order)).delivered_at, null)
  })

  test('a malformed credential that ties to no order gets a fresh challenge, as 402', async (t) => {
    const server = await startShop(t)
    const order = await paid(server)
    const { challenge, preimage } = order
    const macaroon = SCHEMES.L402(challenge, preimage).slice('L402 '.length)
    const wrong = '00'.repeat(32)
    const forgedId = {
      challenge: { ...paymentChallengeOf(challenge), id: 'A'.repeat(43) },
      payload: { preimage: wrong },
    }
    for (const authorization of [
      'Payment',
      'Payment e30',
      'Payment dGhpcyBpcyBnYXJiYWdl',
      paymentAuthorization(forgedId),
      'L402',
      'L402 bad',
      'LSAT bad:bad',
      `L402 ${macaroon.replace(/^.{60}/, (head) => head.toLowerCase())}`,
      'Bearer catch_owner_0',
      'Basic Og==',
    ]) {
      for (const method of ['GET', 'POST'] as const) {
        assertFresh(await look(server, { method, authorization }), order, authorization)
      }
      assert.equal((await look(server, { method: 'HEAD', authorization })).status, 402)
    }
    assert.equal((await rowOf(server, order)).delivered_at, null)
  })

  for (const scheme of FLOWS) {
    test(`a right ${scheme} credential of another purchase neither delivers that one here nor this one there`, async (t) => {
      const server = await startShop(t)
      const flow = scheme === 'L402' ? L402 : PAYMENT
      const keyed = await paidOrderVia(server, flow)
      const here = await paid(server, scheme)
      const elsewhere = ['/api/buy/catch/long', '/api/buy/pulse/spark', `${BUY}/l402`]
      for (const target of [BUY, ...elsewhere]) {
        const answer = await look(server, { target, authorization: keyed.authorization })
        assert.equal(answer.status, 402, target)
        assert.notEqual(offerOf(answer).paymentHash, keyed.paymentHash)
      }
      for (const target of elsewhere.slice(0, 2)) {
        assertFresh(await look(server, { target, authorization: here.authorization }), here, target)
      }
      for (const target of ['/api/payments/catch', '/api/payments/pulse', BUY]) {
        const ask = { target, authorization: here.authorization, headers: {} }
        const answer = await purchase(server, { ...ask, protocol: flow.protocol })
        if (target === BUY) assertError(answer, '400 invalid request body')
        else assert.notEqual(quoteOf(answer).paymentHash, here.paymentHash)
      }
      for (const order of [keyed, here]) {
        assert.equal((await rowOf(server, order)).delivered_at, null)
      }
      capabilityOf(await purchase(server, keyed.ask))
      capabilityOf(await look(server, { authorization: here.authorization }))
    })
  }

  test('a greedy client: each look counts as a new order, and a payer is never refused for it', async (t) => {
    const server = await limited(t, { quote: { perMinute: 10, burst: 10 } })
    const order = await opened(server)
    for (let i = 1; i < 10; i++) await opened(server)
    for (const method of ['GET', 'HEAD', 'POST'] as const) {
      const answer = await look(server, { method, authorization: 'Payment e30' })
      assert.equal(answer.status, 429)
      assert.match(answer.header('retry-after') ?? '', /^[1-9]\d*$/)
      assert.deepEqual(answer.lines('www-authenticate'), [])
    }
    assert.equal((await books(server)).orders, 10)
    capabilityOf(await look(server, { authorization: order.authorization }))
  })

  test('a network has no more unpaid orders by URL than it may have by key', async (t) => {
    const server = await limited(t, { quote: null, openOrders: 3 })
    await openOrder(server)
    const first = await opened(server)
    await opened(server)
    assert.equal((await look(server)).status, 429)
    assert.equal((await books(server)).orders, 3)
    capabilityOf(await look(server, { authorization: first.authorization }))
    assert.equal((await look(server)).status, 402)
  })

  test('a plan that left the sale is refused, and still delivered to who has paid for it', async (t) => {
    const file = await jsonFile(t, {})
    const server = await startShop(t, { MAYFLY_CATALOG: file })
    const order = await opened(server)
    await writeFile(file, '{"catch": {"spark": {"available": false}}}')
    await server.restart()
    assertError(await look(server), '400 invalid plan')
    capabilityOf(await look(server, { authorization: order.authorization }))
  })
})
