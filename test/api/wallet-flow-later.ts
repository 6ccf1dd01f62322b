/**
 * What both wallet flows promise of a credential that comes late, or while the node, the store or the service fails:
 * whoever has paid is honoured, and nobody is asked to pay what cannot be delivered.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { books, purchase } from '../support/buying.ts'
import { startServer } from '../support/server.ts'
import { hideTable } from '../support/store.ts'
import {
  askedBy,
  assertError,
  BASE_URL,
  capabilityOf,
  MINUTE,
  openOrderVia,
  startShop,
  type WalletFlow,
} from '../support/wallet-flow.ts'

export function lateWalletFlowContract(name: string, flow: WalletFlow): void {
  const { protocol } = flow
  const assertAsked = askedBy(flow)

  describe(`buying by ${name}, late or while something fails`, () => {
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
  })
}
