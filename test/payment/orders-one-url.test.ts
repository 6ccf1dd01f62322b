/** Orders of one URL at several instances: what races, and what the node is asked. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import type { CheckedCredential } from '../../src/payment/flows/flow.ts'
import type { Deliverable, OrderRequest, Outcome } from '../../src/payment/order.ts'
import type { Orders } from '../../src/payment/orders.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { delivered, events, many, set, verified, wrong } from '../support/orders.ts'
import {
  aName,
  anOffer,
  aRequest,
  aShop,
  manualClock,
  pendingQuote,
  type ShopOptions,
} from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const REQUEST = aRequest({ bodySha256: '' })
/** When the clock of each shop stands still. */
const NOW = manualClock().now()

const looked = async (at: Orders): Promise<Quote> =>
  pendingQuote(await at.open(null, REQUEST, anOffer()))

const answerOf = (at: Orders, quote: Quote, { mayDeliver = true } = {}) =>
  done(at, { credential: verified(quote), isPeek: !mayDeliver })

/** What a request comes to. Null: it is a new purchase. */
async function done(
  at: Orders,
  ask: { credential: CheckedCredential<string>; isPeek?: boolean; request?: OrderRequest },
): Promise<Outcome | Deliverable | null> {
  const decision = await at.decide({ by: null, request: REQUEST, ...ask })
  if (decision.kind === 'known') return decision.act(null)
  return decision.kind === 'new' ? null : { kind: 'order not found' }
}

suite('an order of one URL', () => {
  test('a right credential at two instances, beside HEADs, provisions once and gets the same bytes', async (t) => {
    const shop = await aShop(t)
    const quote = await looked(shop.orders)
    const elsewhere = shop.another()
    const outcomes = await many(40, (i) =>
      answerOf(i % 2 === 0 ? shop.orders : elsewhere, quote, { mayDeliver: i % 4 < 2 }),
    )
    const gets = outcomes.filter((_, i) => i % 4 < 2)
    const again = await answerOf(elsewhere, quote)
    assert.ok(again?.kind !== 'deliverable')
    const { outcome, publicId } = delivered(again)
    assert.deepEqual(
      gets,
      gets.map(() => outcome),
    )
    assert.deepEqual(await shop.provisioned(), [publicId])
    assert.equal(events(shop, 'order.delivered').length, 1)
    const heads = outcomes.filter((_, i) => i % 4 >= 2)
    assert.deepEqual(new Set(heads.map((head) => head?.kind)), new Set(['deliverable']))
    assert.deepEqual(shop.node.lookups, [])
  })
})

suite('what an order of one URL answers', () => {
  async function asked(t: TestContext, options: ShopOptions = {}) {
    const shop = await aShop(t, options)
    const quote = await looked(shop.orders)
    const answer = (credential: CheckedCredential<string>, mayDeliver = true, request = REQUEST) =>
      done(shop.orders, { credential, isPeek: !mayDeliver, request })
    return { shop, quote, answer, change: (columns: string) => set(shop, columns) }
  }

  test('a request without a credential, or with one of no order, is a new purchase', async (t) => {
    const { answer } = await asked(t)
    const forged: CheckedCredential<string> = { kind: 'invalid', reason: 'no', paymentHash: null }
    const unknown: CheckedCredential<string> = { ...forged, paymentHash: 'ff'.repeat(32) }
    for (const credential of [{ kind: 'none' } as const, forged, unknown])
      assert.equal(await answer(credential), null)
  })

  test('a credential of another request, or of an order with a key, is a new purchase', async (t) => {
    const { shop, quote, answer } = await asked(t)
    const other = aRequest({ bodySha256: '', planId: 'flame' as never })
    assert.equal(await answer(verified(quote), true, other), null)
    const keyed = pendingQuote(await shop.orders.open(aName(), aRequest(), anOffer()))
    assert.equal(await answer(verified(keyed)), null)
    assert.equal((await shop.order(keyed))?.state, 'pending')
  })

  test('an order with a key that was restored is answered like one of one URL', async (t) => {
    const { quote, answer, change } = await asked(t)
    await change('restored_at = 1')
    assert.equal((await answer(verified(quote)))?.kind, 'delivered')
  })

  test('a payment whose order is lost is told to the operator, and asks for no second one', async (t) => {
    const { shop, quote, answer } = await asked(t)
    await shop.db.write(unit({ text: 'delete from purchase_order', values: [] }))
    assert.deepEqual(await answer(verified(quote)), { kind: 'order not found' })
    const told = { event: 'order.proven_unknown', paymentHash: quote.paymentHash }
    assert.deepEqual(events(shop, told.event), [{ ...told, product: 'catch', planId: 'spark' }])
    assert.equal(await answer(wrong(quote)), null)
  })

  test('a look settles the order and says that it can be delivered, and delivers nothing', async (t) => {
    const { shop, quote, answer } = await asked(t)
    const { paymentHash } = quote
    const settledAt = shop.clock.now()
    assert.deepEqual(await answer(verified(quote), false), {
      kind: 'deliverable',
      paymentHash,
      settledAt,
    })
    assert.equal((await shop.order(quote))?.delivered_at, null)
    assert.equal((await answer(verified(quote)))?.kind, 'delivered')
    assert.equal((await answer(verified(quote), false))?.kind, 'deliverable')
  })

  test('a look at an order that is owed says that nothing can be had for now', async (t) => {
    const { quote, answer } = await asked(t, { isSoldOut: true })
    assert.deepEqual(await answer(verified(quote), false), { kind: 'checkout unavailable' })
    assert.deepEqual(await answer(verified(quote)), { kind: 'checkout unavailable' })
  })

  test('a look at an order that ends as it is settled says that it is over', async (t) => {
    const text = `update purchase_order set sealed_at = 1, sealed_by = 'use'`
    const { quote, answer } = await asked(t, { provisions: () => [{ text, values: [] }] })
    assert.deepEqual(await answer(verified(quote), false), { kind: 'order expired' })
  })

  test('a look at a paid order that is gone once it is settled asks for no second payment', async (t) => {
    const text = 'delete from purchase_order'
    const { quote, answer } = await asked(t, { provisions: () => [{ text, values: [] }] })
    assert.deepEqual(await answer(verified(quote), false), { kind: 'checkout unavailable' })
  })

  test('a wrong credential of a dead order is a new purchase', async (t) => {
    const { quote, answer, change } = await asked(t)
    await change(`state = 'dead', is_dead_final = 1`)
    assert.equal(await answer(wrong(quote)), null)
  })

  /** What a finished order answers to its credential: a new purchase, or that it was delivered. */
  const FINISHED: Record<string, [set: string, isNew: boolean]> = {
    'was delivered, and whose repeats are over': [`sealed_at = 1, sealed_by = 'age'`, false],
    'was delivered and used': [`sealed_at = 1, sealed_by = 'use'`, true],
    'has ended': ['expires_at = 1', true],
    'ends at this moment': [`sealed_at = 1, sealed_by = 'age', expires_at = ${NOW}`, true],
    'was sealed without a delivery': ['sealed_at = 1, delivered_at = null', true],
    'was paid back': [`state = 'refunded'`, true],
  }
  for (const [what, [columns, isNew]] of Object.entries(FINISHED)) {
    test(`an order of one URL that ${what} is ${isNew ? 'a new purchase' : 'not bought again'}`, async (t) => {
      const { quote, answer, change } = await asked(t)
      assert.equal((await answer(verified(quote)))?.kind, 'delivered')
      await change(columns)
      assert.deepEqual(await answer(verified(quote)), isNew ? null : { kind: 'already delivered' })
    })
  }
})
