/**
 * What both wallet flows promise: a credential buys its own order once and for its own request, whoever has paid is
 * never asked to pay again, and nobody is asked to pay what cannot be delivered.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { books, idempotencyKey, poll, purchase, quoteOf } from '../support/buying.ts'
import type { After } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import { hideTable } from '../support/store.ts'
import {
  askedBy,
  assertError,
  BASE_URL,
  capabilityOf,
  L402,
  openOrderVia,
  PAYMENT,
  paidOrderVia,
  startShop,
  type WalletFlow,
} from '../support/wallet-flow.ts'

export function walletFlowContract(name: string, flow: WalletFlow): void {
  const { protocol } = flow
  const other = flow === PAYMENT ? L402 : PAYMENT
  const assertAsked = askedBy(flow)

  describe(`buying by ${name}`, () => {
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

    async function aMovingShop(t: After) {
      const environment = { MAYFLY_BASE_URL: BASE_URL }
      const server = await startServer(t, environment)
      /** Restarts it under another public address. */
      async function move() {
        environment.MAYFLY_BASE_URL = 'http://127.0.0.1:9402'
        await server.restart()
      }
      return { server, move }
    }

    test('what a challenge of the old public address was or is paid for is delivered after it changed', async (t) => {
      const { server, move } = await aMovingShop(t)
      const [delivered, paid] = [await paidOrderVia(server, flow), await paidOrderVia(server, flow)]
      const open = await openOrderVia(server, flow)
      const answer = await purchase(server, delivered.ask)
      await move()
      assert.equal((await purchase(server, delivered.ask)).text, answer.text)
      const first = await purchase(server, paid.ask)
      capabilityOf(first)
      assert.equal((await purchase(server, paid.ask)).text, first.text)
      await server.pay(open.bolt11)
      capabilityOf(await purchase(server, open.ask))
      assert.deepEqual(await books(server), { orders: 3, invoices: 3, settled: 3, inboxes: 3 })
    })

    test('a repeat at the new public address shows the same invoice, in a challenge that opens', async (t) => {
      const { server, move } = await aMovingShop(t)
      const order = await openOrderVia(server, flow)
      await move()
      const again = await openOrderVia(server, flow, { key: order.key })
      assert.equal(quoteOf(again.challenge).bolt11, order.bolt11)
      await server.pay(order.bolt11)
      capabilityOf(await purchase(server, again.ask))
      assert.deepEqual(await books(server), { orders: 1, invoices: 1, settled: 1, inboxes: 1 })
    })
  })
}
