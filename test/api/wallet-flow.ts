/**
 * What both wallet flows promise: a credential buys its own order once and for its own request, and
 * whoever has paid is never asked to pay again.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { decodeReceipt } from '../../src/protocol/payment-auth.ts'
import {
  type Answer,
  type Ask,
  books,
  idempotencyKey,
  poll,
  purchase,
  quoteOf,
} from '../support/buying.ts'
import { startServer } from '../support/server.ts'
import { hideTable, query } from '../support/store.ts'
import {
  assertBareRefusal,
  assertError,
  BASE_URL,
  capabilityOf,
  HOUR,
  L402,
  MINUTE,
  openOrderVia,
  PAYMENT,
  paidOrderVia,
  startShop,
  use,
  type WalletFlow,
} from '../support/wallet-flow.ts'

export function walletFlowContract(name: string, flow: WalletFlow): void {
  const { protocol } = flow
  const other = flow === PAYMENT ? L402 : PAYMENT
  /** A 402 with a challenge of this flow, for this order. */
  function assertAsked(answer: Answer, paymentHash: string, note?: string): void {
    assert.equal(answer.status, 402, `${note}: ${answer.text}`)
    assert.equal(quoteOf(answer).paymentHash, paymentHash, note)
    assert.match(flow.credential(answer, '00'.repeat(32)), /^(?:Payment|L402) /)
    assert.deepEqual(answer.lines('cache-control'), ['no-store'], note)
    assert.deepEqual(answer.lines('payment-receipt'), [], note)
  }

  describe(`buying by ${name}`, () => {
    test('a challenge is repeated for its key byte for byte, and is one order and one invoice', async (t) => {
      const server = await startShop(t)
      const key = randomUUID()
      const first = await purchase(server, { key, protocol })
      const again = await purchase(server, { key, protocol })
      assert.equal(again.text, first.text)
      assert.deepEqual(again.lines('www-authenticate'), first.lines('www-authenticate'))
      assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 0, inboxes: 0 })
    })

    test('every flow shows the same order and the same invoice', async (t) => {
      const server = await startShop(t)
      const key = randomUUID()
      const native = quoteOf(await purchase(server, { key }))
      for (const shown of [protocol, other.protocol]) {
        const quote = { ...quoteOf(await purchase(server, { key, protocol: shown })) }
        for (const [member, value] of Object.entries(native)) {
          assert.equal(quote[member as keyof typeof quote], value, member)
        }
      }
      assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 0, inboxes: 0 })
    })

    test('the paid repeat gets the capability, and gets it again byte for byte', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await paidOrderVia(server, flow)
      const first = await purchase(server, { key, protocol, authorization })
      capabilityOf(first)
      assert.deepEqual(first.lines('www-authenticate'), [])
      assert.deepEqual(first.lines('content-type'), ['application/json; charset=utf-8'])
      for (let i = 0; i < 3; i++) {
        const again = await purchase(server, { key, protocol, authorization })
        assert.equal(again.text, first.text)
        assert.deepEqual(again.lines('payment-receipt'), first.lines('payment-receipt'))
      }
      assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 1, inboxes: 1 })
    })

    test('a credential selects its flow, whatever else the request prefers', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await paidOrderVia(server, flow)
      const texts = new Set<string>()
      const receipts = new Set<number>()
      for (const ask of [
        {},
        { protocol: other.protocol },
        { headers: { 'accept-payment': 'lightning/charge' } },
        { headers: { 'accept-authenticate': 'L402' } },
      ]) {
        const answer = await purchase(server, { key, authorization, ...ask })
        capabilityOf(answer)
        texts.add(answer.text)
        receipts.add(answer.lines('payment-receipt').length)
      }
      assert.equal(texts.size, 1)
      assert.deepEqual([...receipts], [flow === PAYMENT ? 1 : 0])
    })

    test('a preimage is proof by itself: the node is not asked', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await openOrderVia(server, flow)
      await query(server, 'alter table simulator_invoice rename to lost')
      capabilityOf(await purchase(server, { key, authorization }))
    })

    test('20 paid repeats at once all get the same bytes, and one settles', async (t) => {
      const server = await startShop(t, { MAYFLY_RATE_LIMITS: 'on' })
      const { key, authorization } = await openOrderVia(server, flow)
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => purchase(server, { key, authorization })),
      )
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
      assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
      assert.equal(new Set(answers.map((one) => one.lines('payment-receipt').join())).size, 1)
      assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 1, inboxes: 1 })
      const settled = server.logged.filter((line) => line.includes('"order.settled"'))
      assert.equal(settled.length, 1)
    })

    test('20 paid repeats and polls provision once, even at once with the payment', async (t) => {
      const server = await startShop(t)
      const { key, authorization, orderId, bolt11 } = await openOrderVia(server, flow)
      const [answers] = await Promise.all([
        Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            i % 2
              ? poll(server, orderId, idempotencyKey(key))
              : purchase(server, { key, authorization }),
          ),
        ),
        server.pay(bolt11),
      ])
      const bought = answers.filter(({ status }) => status === 200)
      assert.ok(bought.length >= 10)
      assert.equal(new Set(bought.map(({ text }) => text)).size, 1)
      assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 1, inboxes: 1 })
    })

    test('the flow may change at every step, and it stays one purchase', async (t) => {
      const server = await startShop(t)
      const key = randomUUID()
      const native = quoteOf(await purchase(server, { key }))
      const mine = await purchase(server, { key, protocol })
      const theirs = await purchase(server, { key, protocol: other.protocol })
      const preimage = await server.pay(native.bolt11)

      const authorization = flow.credential(mine, preimage)
      const first = await purchase(server, { key, authorization })
      capabilityOf(first)
      assertError(await poll(server, native.orderId), '404 already delivered')
      for (const again of [
        await purchase(server, { key, authorization: other.credential(theirs, preimage) }),
        await poll(server, native.orderId, idempotencyKey(key)),
        await purchase(server, { key }),
        await purchase(server, { key, protocol }),
        await purchase(server, { key, protocol: other.protocol }),
      ]) {
        assert.equal(again.status, 200)
        assert.equal(again.text, first.text)
      }
      assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 1, inboxes: 1 })
    })

    test('a capability that a poll has taken is repeated to its credential', async (t) => {
      const server = await startShop(t)
      const { key, authorization, orderId } = await paidOrderVia(server, flow)
      server.clock.advance(1_000)
      const polled = await poll(server, orderId)
      capabilityOf(polled)
      assert.equal((await purchase(server, { key, authorization })).text, polled.text)
    })

    test('after the first use of a token no flow asks for money again', async (t) => {
      const server = await startShop(t)
      const { key, authorization, orderId } = await paidOrderVia(server, flow)
      const foreign = await paidOrderVia(server, flow)
      await use(server, await purchase(server, { key, authorization }))
      for (const [note, ask] of Object.entries({
        native: {},
        [protocol]: { protocol },
        [other.protocol]: { protocol: other.protocol },
        'the credential': { authorization },
        'the credential and its flow': { authorization, protocol },
        'a bad Payment credential': { authorization: 'Payment bad' },
        'a bad L402 credential': { authorization: 'L402 bad' },
        "another order's credential": { authorization: foreign.authorization },
        'a preference': { headers: { 'accept-payment': '*/*', 'accept-authenticate': 'L402' } },
      })) {
        assertError(await purchase(server, { key, ...ask }), '404 already delivered', note)
      }
      assertError(await poll(server, orderId), '404 already delivered')
      assertError(await poll(server, orderId, idempotencyKey(key)), '404 already delivered')
      assert.deepEqual(await books(server), { orders: 2, invoices: 2, settled: 2, inboxes: 2 })
    })

    test('the credential gets no more 24 hours after the delivery, and is not asked to pay', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await paidOrderVia(server, flow, {
        body: '{"planId":"standard"}',
      })
      const ask = { key, authorization, body: '{"planId":"standard"}' }
      const first = await purchase(server, ask)
      server.clock.advance(24 * HOUR - MINUTE)
      assert.equal((await purchase(server, ask)).text, first.text)
      server.clock.advance(2 * MINUTE)
      assertError(await purchase(server, ask), '404 already delivered')
    })

    test('another purchase with the credential of a used order is asked for money of its own', async (t) => {
      const server = await startShop(t)
      const old = await paidOrderVia(server, flow)
      await use(server, await purchase(server, old.ask))
      const answer = await purchase(server, { authorization: old.authorization })
      assertAsked(answer, quoteOf(answer).paymentHash)
      assert.notEqual(quoteOf(answer).paymentHash, old.paymentHash)
      assert.deepEqual(await books(server), { orders: 2, invoices: 2, settled: 1, inboxes: 1 })
      // Also when the other order is there already.
      const next = await openOrderVia(server, flow)
      const refused = await purchase(server, { key: next.key, authorization: old.authorization })
      assertAsked(refused, next.paymentHash)
      assert.deepEqual(refused.lines('www-authenticate'), next.challenge.lines('www-authenticate'))
      capabilityOf(await purchase(server, { key: next.key, authorization: next.authorization }))
    })

    test('a credential is bound to the target, query included, and proves its payment anywhere', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await paidOrderVia(server, flow)
      for (const target of ['/api/payments/catch?a', '/api/payments/catch?a=1']) {
        assertBareRefusal(await purchase(server, { key, authorization, target }), flow, target)
      }
      const bound = await paidOrderVia(server, flow, { target: '/api/payments/catch?a=1' })
      assertBareRefusal(
        await purchase(server, { key: bound.key, authorization: bound.authorization }),
        flow,
      )
      const { key: boundKey, authorization: right } = bound
      const target = '/api/payments/catch?a=1'
      capabilityOf(await purchase(server, { key: boundKey, authorization: right, target }))
      capabilityOf(await purchase(server, { key, authorization }))
      assert.deepEqual(await books(server), { orders: 2, invoices: 2, settled: 2, inboxes: 2 })
    })

    test('a credential is bound to every byte of the body', async (t) => {
      const server = await startShop(t)
      const { key, authorization, paymentHash } = await paidOrderVia(server, flow)
      for (const body of ['{"planId":"long"}', '{"planId": "spark"}', '{"planId":"spark"}\n']) {
        const reused = await purchase(server, { key, authorization, body })
        assertError(reused, '400 idempotency key reused with a different request')
        const fresh = await purchase(server, { authorization, body })
        assert.notEqual(quoteOf(fresh).paymentHash, paymentHash)
        assertAsked(fresh, quoteOf(fresh).paymentHash)
      }
      capabilityOf(await purchase(server, { key, authorization }))
    })

    test('a request with another method is refused, and takes nothing', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await paidOrderVia(server, flow)
      // A widespread client loses method and body on the paid repeat of a Request object.
      for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const answer = await purchase(server, { key, authorization, method })
        assert.deepEqual([answer.status, answer.lines('www-authenticate')], [405, []], method)
      }
      capabilityOf(await purchase(server, { key, authorization }))
    })

    test('a request that is broken is refused as such, whatever its credential', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await paidOrderVia(server, flow)
      const ask = { key, authorization }
      assertError(await purchase(server, { ...ask, body: '{}' }), '400 invalid request body')
      assertError(await purchase(server, { ...ask, body: '{"planId":"x"}' }), '400 invalid plan')
      const coded = await purchase(server, { ...ask, headers: { 'content-encoding': 'gzip' } })
      assertError(coded, '400 unsupported media type')
      const form = await purchase(server, {
        ...ask,
        headers: { 'content-type': 'multipart/form-data; boundary=x' },
      })
      assertError(form, '400 unsupported media type')
      assertError(await purchase(server, { ...ask, key: 'short' }), '400 invalid idempotency key')
      capabilityOf(await purchase(server, ask))
    })

    test('headers above 32 KiB are refused without a challenge', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await paidOrderVia(server, flow)
      const answer = await purchase(server, {
        key,
        authorization: authorization + 'A'.repeat(33_000),
      })
      assert.deepEqual([answer.status, answer.text], [431, '{"error":"request too large"}'])
      assert.deepEqual(answer.lines('www-authenticate'), [])
      capabilityOf(await purchase(server, { key, authorization }))
    })

    test('an order that ran out unpaid is gone, but for the credential that proves the payment', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await openOrderVia(server, flow)
      server.clock.advance(15 * MINUTE)
      const expired = '404 order expired'
      assertError(await purchase(server, { key, protocol }), expired, 'the node says so')
      assertError(await purchase(server, { key, protocol }), expired, 'and it is known')
      const bad = `${authorization}0`
      assertError(await purchase(server, { key, authorization: bad }), expired, 'a bad credential')
      const first = await purchase(server, { key, authorization })
      capabilityOf(first)
      assert.equal((await purchase(server, { key, protocol })).text, first.text)
      assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 1, inboxes: 1 })
    })

    test('a credential after the end of its quote is proof, whatever the node says of the invoice', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await openOrderVia(server, flow)
      // A payment is under way that the node does not know the end of.
      await query(server, 'update simulator_invoice set expires_at = expires_at + 3600000')
      server.clock.advance(15 * MINUTE)
      // A repeat without proof is asked for the money that is still wanted.
      const asked = await purchase(server, { key, protocol })
      assertAsked(asked, quoteOf(asked).paymentHash)
      capabilityOf(await purchase(server, { key, authorization }))
    })

    test('a credential after the end of its quote is honoured when the node was paid in time', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await openOrderVia(server, flow)
      await query(server, `update simulator_invoice set state = 'settled'`)
      server.clock.advance(2 * HOUR)
      const first = await purchase(server, { key, authorization })
      capabilityOf(first)
      assert.equal((await purchase(server, { key, authorization })).text, first.text)
    })

    test('a credential after the end of its quote is honoured while the node is away', async (t) => {
      const server = await startShop(t)
      const { key, authorization } = await openOrderVia(server, flow)
      await query(server, 'alter table simulator_invoice rename to lost')
      server.clock.advance(15 * MINUTE)
      capabilityOf(await purchase(server, { key, authorization }))
    })

    test('a node that makes no invoice is 503 without a challenge, with a credential too', async (t) => {
      const server = await startShop(t)
      const { authorization, ask } = await paidOrderVia(server, flow)
      await use(server, await purchase(server, ask))
      // A byte too short to sign with, and long enough to start with.
      await query(
        server,
        `update meta set value = $1 where name = 'simulator_key'`,
        '01'.repeat(31),
      )
      await server.restart()
      const unavailable = '503 checkout unavailable'
      assertError(await purchase(server, { authorization }), unavailable, 'a foreign credential')
      assertError(await purchase(server, { protocol }), unavailable)
    })

    test('a store that fails is a 500 without a challenge, and the order is whole after it', async (t) => {
      const server = await startShop(t)
      const { key, authorization, preimage } = await openOrderVia(server, flow)
      for (const table of ['purchase_order', 'catch_inbox']) {
        const show = await hideTable(server, table)
        assertError(await purchase(server, { key, authorization }), '500 internal error', table)
        await show()
      }
      const token = authorization.slice(authorization.indexOf(' ') + 1)
      assert.ok(!server.logged.join('').includes(preimage))
      assert.ok(!server.logged.join('').includes(token))
      capabilityOf(await purchase(server, { key, authorization }))
      assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 1, inboxes: 1 })
    })

    test('a restart between any two steps changes nothing', async (t) => {
      const server = await startShop(t)
      const { key, authorization, challenge, bolt11 } = await openOrderVia(server, flow)
      await server.restart()
      const again = await purchase(server, { key, protocol })
      assert.equal(again.text, challenge.text)
      await server.pay(bolt11)
      await server.restart()
      const first = await purchase(server, { key, authorization })
      capabilityOf(first)
      await server.restart()
      const replayed = await purchase(server, { key, authorization })
      assert.equal(replayed.text, first.text)
      assert.deepEqual(replayed.lines('payment-receipt'), first.lines('payment-receipt'))
    })

    test('a challenge outlives the change of the secret, while the old one is kept', async (t) => {
      const [old, fresh] = ['11'.repeat(32), '22'.repeat(32)]
      const environment: Record<string, string> = {
        MAYFLY_BASE_URL: BASE_URL,
        MAYFLY_SECRET: old,
      }
      const server = await startServer(t, environment)
      const paid = await openOrderVia(server, flow)
      const delivered = await openOrderVia(server, flow)
      const first = await purchase(server, {
        key: delivered.key,
        authorization: delivered.authorization,
      })
      environment.MAYFLY_SECRET = `${fresh},${old}`
      await server.restart()
      const { key, authorization } = paid
      const renewed = await purchase(server, { key, protocol })
      assertAsked(renewed, paid.paymentHash)
      assert.notEqual(
        renewed.lines('www-authenticate').join(),
        paid.challenge.lines('www-authenticate').join(),
      )
      const bought = await purchase(server, { key, authorization })
      capabilityOf(bought)
      const renewedAuthorization = flow.credential(renewed, paid.preimage)
      const same = await purchase(server, { key, authorization: renewedAuthorization })
      assert.equal(same.text, bought.text)
      const replayed = await purchase(server, {
        key: delivered.key,
        authorization: delivered.authorization,
      })
      assert.equal(replayed.text, first.text)
      assert.deepEqual(replayed.lines('payment-receipt'), first.lines('payment-receipt'))
    })

    test('a credential of a secret that was removed is forged', async (t) => {
      const environment: Record<string, string> = {
        MAYFLY_BASE_URL: BASE_URL,
        MAYFLY_SECRET: '11'.repeat(32),
      }
      const server = await startServer(t, environment)
      const { authorization } = await paidOrderVia(server, flow)
      await query(server, 'delete from purchase_order')
      environment.MAYFLY_SECRET = '22'.repeat(32)
      await server.restart()
      const answer = await purchase(server, { authorization })
      assert.equal(answer.status, flow === PAYMENT ? 402 : 401)
    })

    test('a genuine credential finds the order of a guessable key from any address', async (t) => {
      const server = await startShop(t, { MAYFLY_TRUSTED_PROXIES: '127.0.0.1' })
      const key = 'order-01'
      const order = await paidOrderVia(server, flow, { key, from: '203.0.113.1' })
      capabilityOf(await purchase(server, { ...order.ask, from: '2001:db8::7' }))
      capabilityOf(await purchase(server, { ...order.ask, from: '203.0.113.1' }))
      const stranger = await purchase(server, { key, protocol, from: '198.51.100.9' })
      assertError(stranger, '404 proof of payment required')
      assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 1, inboxes: 1 })
    })

    test('no preimage and no credential reaches the log or an answer', async (t) => {
      const server = await startShop(t, { MAYFLY_LOG_LEVEL: 'debug' })
      const answers: Answer[] = []
      const ask = async (one: Ask): Promise<void> => void answers.push(await purchase(server, one))
      const paid = await paidOrderVia(server, flow)
      const { key, authorization, preimage } = paid
      const unpaid = await openOrderVia(server, flow)
      await ask({ authorization })
      await ask({ key, authorization, target: '/api/payments/catch?x' })
      await ask({ key, authorization: `${authorization}!` })
      await ask({ key, authorization: [authorization, `${authorization}0`] })
      await ask({ key: unpaid.key, authorization: flow.credential(unpaid.challenge, preimage) })
      await ask({ key, authorization, body: '{}' })
      await ask({ key, authorization, method: 'GET' })
      await ask({ key, authorization })
      await ask({ key, authorization })
      await query(server, 'alter table purchase_order rename to lost')
      await ask({ key, authorization })
      await query(server, 'alter table lost rename to purchase_order')
      server.clock.advance(16 * MINUTE)
      await ask({ key: unpaid.key, authorization: unpaid.authorization })
      answers.push(await poll(server, paid.orderId, idempotencyKey(key)))
      await server.stop()

      assert.ok(new Set(answers.map(({ status }) => status)).size >= 5)
      const log = server.logged.join('')
      assert.match(log, /"http.request"/)
      const token = authorization.slice(authorization.indexOf(' ') + 1)
      const macaroon = token.split(':')[0] ?? ''
      for (const secret of [preimage, unpaid.preimage, token, macaroon, key]) {
        assert.ok(!log.includes(secret), 'the log')
      }
      for (const { whole, status, lines } of answers) {
        const [receipt = ''] = lines('payment-receipt')
        const told = `${whole}${Buffer.from(receipt, 'base64url').toString()}`
        for (const secret of [preimage, unpaid.preimage]) {
          assert.ok(!told.includes(secret), `an answer with ${status}`)
        }
        if (receipt !== '') assert.ok(decodeReceipt(receipt))
      }
    })
  })
}
