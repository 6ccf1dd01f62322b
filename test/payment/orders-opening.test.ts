import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Json } from '../../src/lib/jcs.ts'
import type { OrderRequest } from '../../src/payment/order.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { events, kinds, many, OTHER_KEY, QUOTE_LIFE } from '../support/orders.ts'
import { aName, anOffer, aRequest, aShop, LIFE, SECOND, type Shop } from '../support/shop.ts'
import { until } from '../support/until.ts'

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

    test(`${where} that makes no invoice leaves no order, and the same key works later`, async (t) => {
      const shop = await aShop(t, { signsHere })
      const { replaced } = shop.node
      replaced.createInvoice = () => Promise.reject(new Error('no route to node'))
      replaced.signInvoice = () => {
        throw new Error('no route to node')
      }
      const outcomes = await many(5, () => shop.orders.open(aName(), aRequest(), anOffer()))
      assert.deepEqual(
        outcomes,
        outcomes.map(() => ({ kind: 'checkout unavailable' })),
      )
      assert.deepEqual(await shop.db.read('select * from purchase_order'), [])
      // Without an invoice there is nothing but what was asked for to name it by.
      assert.deepEqual(events(shop, 'lightning.invoice_failed')[0], {
        event: 'lightning.invoice_failed',
        product: 'catch',
        planId: 'spark',
        reason: 'no route to node',
      })
      delete replaced.createInvoice
      delete replaced.signInvoice
      await until('the node is asked again', shop.health.isHealthy)
      const quote = await shop.quote()
      assert.deepEqual(await shop.repeat(), { kind: 'pending', quote })
    })
  }

  test('a repeat gets the same quote, even after the price of the plan has changed', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const dearer = anOffer({ plan: { planId: 'spark', priceSats: 900, durationSeconds: 60 } })
    assert.deepEqual(await shop.repeat(), { kind: 'pending', quote })
    assert.deepEqual(await shop.orders.open(aName(), aRequest(), dearer), {
      kind: 'pending',
      quote,
    })
  })

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

  const others: [string, Partial<OrderRequest>][] = [
    ['plan', { planId: 'standard' }],
    ['body', { bodySha256: '01'.repeat(32) }],
    ['terms', { terms: { readLimit: 2 } satisfies Json }],
    ['product', { product: 'pulse' }],
  ]
  for (const [what, change] of others) {
    test(`a key that was used with another ${what} is refused, and changes nothing`, async (t) => {
      const shop = await aShop(t)
      const quote = await shop.quote()
      const before = await shop.order(quote)
      const refusal = { kind: 'idempotency key reused with a different request' }
      assert.deepEqual(await shop.repeat({ request: aRequest(change) }), refusal)
      assert.deepEqual(await shop.orders.open(aName(), aRequest(change), anOffer()), refusal)
      assert.deepEqual(await shop.order(quote), before)
    })
  }

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
