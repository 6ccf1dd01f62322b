/** Orders of one URL at several instances: what races, and what the node is asked. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import type { Deliverable, Outcome } from '../../src/payment/order.ts'
import type { Orders } from '../../src/payment/orders.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { delivered, events, many, set, verified } from '../support/orders.ts'
import {
  anOffer,
  aRequest,
  aShop,
  manualClock,
  pendingQuote,
  type ShopOptions,
} from '../support/shop.ts'

const REQUEST = aRequest({ bodySha256: '' })
/** When the clock of each shop stands still. */
const NOW = manualClock().now()

const looked = async (at: Orders): Promise<Quote> =>
  pendingQuote(await at.open(null, REQUEST, anOffer()))

/** What its credential comes to. Null: it is a new purchase. */
async function answerOf(
  at: Orders,
  quote: Quote,
  { mayDeliver = true } = {},
): Promise<Outcome | Deliverable | null> {
  const ask = { by: null, request: REQUEST, credential: verified(quote), isPeek: !mayDeliver }
  const decision = await at.decide(ask)
  return decision.kind === 'known' ? decision.act(null) : null
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
    return {
      shop,
      answer: ({ mayDeliver = true } = {}) => answerOf(shop.orders, quote, { mayDeliver }),
    }
  }

  test('a look at an order that ends as it is settled says that it is over', async (t) => {
    const text = `update purchase_order set sealed_at = 1, sealed_by = 'use'`
    const { answer } = await asked(t, { provisions: () => [{ text, values: [] }] })
    assert.deepEqual(await answer({ mayDeliver: false }), { kind: 'order expired' })
  })

  test('a look at a paid order that is gone once it is settled asks for no second payment', async (t) => {
    const text = 'delete from purchase_order'
    const { answer } = await asked(t, { provisions: () => [{ text, values: [] }] })
    assert.deepEqual(await answer({ mayDeliver: false }), { kind: 'checkout unavailable' })
  })

  /** Ends that order-of-checks.md has no row for; each was delivered before. */
  const ENDS: Record<string, string> = {
    'ends at this moment': `sealed_at = 1, sealed_by = 'age', expires_at = ${NOW}`,
    'was sealed without a delivery': 'sealed_at = 1, delivered_at = null',
  }
  for (const [what, columns] of Object.entries(ENDS)) {
    test(`an order of one URL that ${what} is a new purchase`, async (t) => {
      const { shop, answer } = await asked(t)
      assert.equal((await answer())?.kind, 'delivered')
      await set(shop, columns)
      assert.equal(await answer(), null)
    })
  }
})
