import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { events, kinds, many, OTHER_KEY, QUOTE_LIFE } from '../support/orders.ts'
import { aName, anOffer, aRequest, aShop, LIFE, SECOND, type Shop } from '../support/shop.ts'

suite('opening an order', () => {
  test('opening makes one invoice for exactly the price, and quotes it', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const invoice = decodeInvoice(quote.bolt11)
    assert.deepEqual(quote, {
      orderId: quote.orderId,
      product: 'catch',
      planId: 'spark',
      amountSats: 100,
      bolt11: quote.bolt11,
      paymentHash: invoice.paymentHash,
      expiresAt: Math.floor(shop.clock.now() / SECOND) * SECOND + QUOTE_LIFE,
      network: 'regtest',
      memo: 'Mayfly CATCH spark',
      durationSeconds: LIFE / SECOND,
    })
    assert.deepEqual(
      [invoice.amountMsat, invoice.description, invoice.expiresAt],
      [100_000, 'Mayfly CATCH spark', quote.expiresAt],
    )
    assert.deepEqual(shop.node.invoices, [quote.paymentHash])
  })

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

  test('one of two requests that differ and come at once with one key is refused', async (t) => {
    const shop = await aShop(t)
    const outcomes = await Promise.all([
      shop.orders.open(aName(), aRequest(), anOffer()),
      shop.orders.open(aName(), aRequest({ planId: 'long' }), anOffer()),
    ])
    assert.deepEqual(kinds(outcomes), [
      'idempotency key reused with a different request',
      'pending',
    ])
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

  test('the invoice of an order that there is no room for is not stored', async (t) => {
    const shop = await aShop(t, { signsHere: true })
    await shop.quote()
    const outcome = await shop.orders.open(aName(OTHER_KEY), aRequest(), anOffer({ maxOpen: 1 }))
    assert.equal(outcome.kind, 'rate limited')
    assert.equal((await invoices(shop)).length, 1)
  })

  const invoices = async (shop: Shop): Promise<unknown[]> =>
    (await shop.db.read('select bolt11 from simulator_invoice')).map(({ bolt11 }) => bolt11)
})
