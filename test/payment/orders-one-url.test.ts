/** Orders of one URL at several instances: what races, and what the node is asked. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { CheckedCredential } from '../../src/payment/flows/flow.ts'
import type { Orders } from '../../src/payment/orders.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { delivered, events, nodeIs } from '../support/orders.ts'
import { anOffer, aRequest, aShop, pendingQuote } from '../support/shop.ts'

const REQUEST = aRequest({ bodySha256: '' })

const looked = async (at: Orders): Promise<Quote> =>
  pendingQuote(await at.oneUrl.open(REQUEST, anOffer()))

const answerOf = (
  at: Orders,
  { paymentHash }: Quote,
  {
    kind = 'verified',
    mayDeliver = true,
  }: { kind?: 'verified' | 'invalid'; mayDeliver?: boolean } = {},
) => {
  const credential: CheckedCredential<string> =
    kind === 'verified'
      ? { kind, order: { paymentHash }, challengeId: '' }
      : { kind, reason: 'wrong', paymentHash }
  return at.oneUrl.answer(REQUEST, credential, { mayDeliver, admit: async () => undefined })
}

suite('an order of one URL', () => {
  test('a right credential at two instances, beside HEADs, provisions once and gets the same bytes', async (t) => {
    const shop = await aShop(t)
    const quote = await looked(shop.orders)
    const elsewhere = shop.another()
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        answerOf(i % 2 === 0 ? shop.orders : elsewhere, quote, { mayDeliver: i % 4 < 2 }),
      ),
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

  test('a right credential settles and delivers while the node is away', async (t) => {
    const shop = await aShop(t)
    const quote = await looked(shop.orders)
    nodeIs(shop, 'away')
    assert.equal((await answerOf(shop.orders, quote))?.kind, 'delivered')
  })

  test('looks at once are as many orders, with an invoice each', async (t) => {
    const shop = await aShop(t)
    const quotes = await Promise.all(Array.from({ length: 20 }, () => looked(shop.orders)))
    assert.equal(new Set(quotes.map(({ orderId }) => orderId)).size, 20)
    assert.equal(new Set(quotes.map(({ bolt11 }) => bolt11)).size, 20)
    assert.equal(shop.node.invoices.length, 20)
  })

  test('a wrong preimage asks the node whether the order is paid, and is never met by an invoice then', async (t) => {
    const shop = await aShop(t)
    const quote = await looked(shop.orders)
    const wrong = { kind: 'invalid' } as const
    const unpaid = await answerOf(shop.orders, quote, wrong)
    assert.deepEqual(unpaid?.kind === 'invalid credential' && unpaid.quote, quote)
    await shop.pay(quote)
    shop.clock.advance(1_000)
    const paid = await answerOf(shop.orders, quote, wrong)
    assert.deepEqual(paid, { kind: 'invalid credential', quote: null })
  })
})
