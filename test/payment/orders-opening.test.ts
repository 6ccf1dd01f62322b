import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { events, many, OTHER_KEY } from '../support/orders.ts'
import { aName, anOffer, aRequest, aShop, type Shop } from '../support/shop.ts'

suite('opening an order', () => {
  for (const signsHere of [false, true]) {
    const where = signsHere ? 'this process' : 'a node'

    test(`opening shows one invoice of ${where}, however many ask at once, here and elsewhere`, async (t) => {
      const shop = await aShop(t, { signsHere })
      const elsewhere = shop.another()
      const outcomes = await many(50, (i) =>
        (i % 2 === 0 ? shop.orders : elsewhere).open(aName(), aRequest(), anOffer()),
      )
      const quote = await shop.quote()
      assert.deepEqual(
        outcomes,
        outcomes.map(() => ({ kind: 'pending', quote })),
      )
      assert.deepEqual(await shop.db.read('select payment_hash from purchase_order'), [
        { payment_hash: quote.paymentHash },
      ])
      assert.equal(events(shop, 'order.quoted').length, 1)
      // An invoice of this process that lost is not stored.
      if (signsHere) assert.deepEqual(await invoices(shop), [quote.bolt11])
    })
  }

  test('a repeat gets the same quote, even after its plan gives other terms to who names none', async (t) => {
    const shop = await aShop(t)
    const plan = { planId: 'spark', priceSats: 100, durationSeconds: 60 }
    const request = aRequest({
      terms: (sold) => ({ readLimit: (sold as { reads: number }).reads }),
    })
    const open = (reads: number) =>
      shop.orders.open(aName(), request, anOffer({ plan: { ...plan, reads } }))
    const first = await open(5)
    assert.equal(first.kind, 'pending')
    assert.deepEqual(await open(9), first)
  })

  test('opening is refused while the node is out of sync, and what is open is repeated', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    shop.node.replaced.info = async () => ({ network: 'regtest', synced: false, nodeId: null })
    shop.health.doubt()
    assert.deepEqual(await shop.orders.open(aName(OTHER_KEY), aRequest(), anOffer()), {
      kind: 'checkout unavailable',
    })
    assert.deepEqual(await shop.repeat(), { kind: 'pending', quote })
  })

  const invoices = async (shop: Shop): Promise<unknown[]> =>
    (await shop.db.read('select bolt11 from simulator_invoice')).map(({ bolt11 }) => bolt11)
})
