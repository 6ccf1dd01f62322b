/** What a contested order is delivered to, when several clients and instances ask at once. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CheckedCredential } from '../../src/payment/flows/flow.ts'
import type { Outcome } from '../../src/payment/order.ts'
import { delivered, many, nodeSays, plainPoll } from '../support/orders.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  CLIENT,
  KEY,
  pendingQuote,
  type Shop,
} from '../support/shop.ts'

const ELSEWHERE = '198.51.100.9'
const PROOF_REQUIRED = { kind: 'proof of payment required' }

const contestedIn = async (shop: Shop): Promise<unknown> =>
  (await shop.db.read('select contested from purchase_order'))[0]?.contested

const settle = async (shop: Shop, quote: { bolt11: string; paymentHash: string }) => {
  await shop.node.simulator.pay(quote.bolt11)
  await shop.orders.reconcile(quote.paymentHash, 'stream')
}

suite('two clients with one key', () => {
  test('two clients that open an order at once are one order, contested whoever was first', async (t) => {
    const shop = await aShop(t)
    const elsewhere = shop.another()
    const outcomes = await many(40, (i) =>
      (i % 3 === 0 ? elsewhere : shop.orders).open(
        aName(KEY, { client: i % 2 === 0 ? CLIENT : ELSEWHERE }),
        aRequest(),
        anOffer(),
      ),
    )
    assert.equal(new Set(outcomes.map((one) => pendingQuote(one).paymentHash)).size, 1)
    assert.equal(await contestedIn(shop), 1)
    const quote = pendingQuote(outcomes[0] as Outcome)
    await settle(shop, quote)
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), PROOF_REQUIRED)
  })

  test('requests of one client at once contest nothing, and those of a client that is not known do', async (t) => {
    for (const [client, contested] of [
      [CLIENT, 0],
      [null, 1],
    ] as const) {
      const shop = await aShop(t)
      const elsewhere = shop.another()
      await Promise.all(
        [shop.orders, elsewhere, shop.orders].map((at) =>
          at.open(aName(KEY, { client }), aRequest(), anOffer()),
        ),
      )
      assert.equal(await contestedIn(shop), contested)
    }
  })

  test('the request from elsewhere and the payment leave an order that a stranger never gets', async (t) => {
    for (let round = 0; round < 20; round++) {
      const shop = await aShop(t)
      const quote = await shop.paid()
      const [, , stranger] = await Promise.all([
        shop.orders.reconcile(quote.paymentHash, 'stream'),
        shop.another().reconcile(quote.paymentHash, 'lookup'),
        shop.repeat({ client: ELSEWHERE }),
      ])
      // Whoever was shown the quote has contested the order; whoever was refused has changed nothing.
      const isShown = stranger?.kind === 'pending'
      if (!isShown) assert.deepEqual(stranger, PROOF_REQUIRED)
      assert.equal(await contestedIn(shop), isShown ? 1 : 0)
      const collected = await shop.orders.poll(quote.orderId, plainPoll)
      assert.equal(collected.kind, isShown ? PROOF_REQUIRED.kind : 'delivered')
    }
  })
})

suite('what contests no order', () => {
  test('proof from elsewhere contests nothing: a credential, or the preimage with the key', async (t) => {
    for (const ask of [{ credential: 'verified' }, { isProven: true }] as const) {
      const shop = await aShop(t)
      await shop.quote()
      delivered(await shop.repeat({ ...ask, client: ELSEWHERE }))
      assert.equal(await contestedIn(shop), 0)
    }
  })

  test('a credential for another request, a dead order and a sold-out one are not contested', async (t) => {
    const shop = await aShop(t)
    const { paymentHash } = await shop.quote()
    const credential: CheckedCredential<string> = { kind: 'mismatched', paymentHash }
    const by = aName(KEY, { client: ELSEWHERE })
    const decision = await shop.orders.decide({ by, request: aRequest(), credential })
    assert.ok(decision.kind === 'known')
    assert.deepEqual(await decision.act(null), { kind: 'invalid credential', quote: null })
    assert.equal(await contestedIn(shop), 0)

    const dead = await aShop(t)
    await dead.quote()
    nodeSays(dead, 'dead')
    assert.deepEqual(await dead.repeat({ client: ELSEWHERE }), { kind: 'order expired' })
    assert.equal(await contestedIn(dead), 0)
  })

  test('an extension is not contested, wherever it is asked for', async (t) => {
    const shop = await aShop(t)
    const request = aRequest({ extendsId: 'catch_0000000000000000000000' })
    await shop.orders.open(aName(), request, anOffer())
    const seen = await shop.repeat({ request, client: ELSEWHERE })
    assert.equal(seen?.kind === 'pending' && seen.quote.proofRequired, undefined)
    assert.equal(await contestedIn(shop), 0)
  })
})
