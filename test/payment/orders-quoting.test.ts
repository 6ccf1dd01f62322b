/** How an order comes by its one invoice, who waits for it, and what refuses it. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { events, many, OTHER_KEY } from '../support/orders.ts'
import { aName, anOffer, aRequest, aShop, KEY, pendingQuote, type Shop } from '../support/shop.ts'
import { unit } from '../support/unit.ts'
import { until } from '../support/until.ts'
import { key } from '../support/watching.ts'

const UNAVAILABLE = { kind: 'checkout unavailable' }

const open = (shop: Shop, { name = KEY, offer = {}, at = shop.orders } = {}) =>
  at.open(aName(name), aRequest(), anOffer(offer))

const orderIds = async (shop: Shop): Promise<unknown[]> =>
  (await shop.db.read('select order_id from purchase_order')).map(({ order_id }) => order_id)

/** Lets the node answer the next invoice's request only when the test says so. */
function holdingTheNode(shop: Shop) {
  const asked = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  shop.node.replaced.createInvoice = async (ask) => {
    delete shop.node.replaced.createInvoice
    asked.resolve()
    await held.promise
    return shop.node.simulator.createInvoice(ask)
  }
  return { asked: asked.promise, answer: held.resolve }
}

suite('an order that there is no room for', () => {
  test('a product without room left says nothing of when there will be some, and keeps no order', async (t) => {
    const shop = await aShop(t)
    const offer = {
      maxOpen: 9,
      reserve: () => [{ text: `delete from meta where name = 'room'`, values: [], expect: 1 }],
    }
    const first = await shop.quote(key(1))
    const refused = { kind: 'rate limited', retryAfterSeconds: null }
    assert.deepEqual(await open(shop, { offer }), refused)
    assert.deepEqual(await orderIds(shop), [first.orderId])
    await shop.db.write(unit({ text: `insert into meta values ('room', '1')`, values: [] }))
    pendingQuote(await open(shop, { offer }))
    assert.deepEqual(await open(shop, { name: OTHER_KEY, offer }), refused)
  })
})

suite('the invoice of an order', () => {
  for (const signsHere of [false, true]) {
    test(`an order is logged once it has its invoice${signsHere ? ', also if this process signs it' : ''}`, async (t) => {
      const shop = await aShop(t, { signsHere })
      const { paymentHash } = await shop.quote()
      await open(shop)
      assert.deepEqual(events(shop, 'order.quoted'), [
        {
          event: 'order.quoted',
          paymentHash,
          product: 'catch',
          planId: 'spark',
          amountSats: 100,
        },
      ])
    })
  }

  test('an order says that it is to be paid on the network of its node', async (t) => {
    for (const network of ['mainnet', 'signet', 'regtest'] as const) {
      const shop = await aShop(t)
      shop.node.replaced.createInvoice = async (ask) => ({
        ...(await shop.node.simulator.createInvoice(ask)),
        network,
      })
      const quote = await shop.quote()
      assert.equal(quote.network, network)
      assert.equal((await shop.order(quote))?.network, network)
    }
  })

  test('an invoice that the node did not make as asked is shown to nobody, and sales wait for the node', async (t) => {
    const shop = await aShop(t)
    const answers = Promise.withResolvers<void>()
    shop.node.replaced.info = async () => {
      await answers.promise
      return shop.node.simulator.info()
    }
    shop.node.replaced.createInvoice = async () => {
      throw new Error('the amount differs')
    }
    assert.deepEqual(await open(shop), UNAVAILABLE)
    assert.deepEqual(await orderIds(shop), [])
    // Without an invoice there is nothing but what was asked for to name it by.
    const event = 'lightning.invoice_failed'
    assert.deepEqual(events(shop, event), [
      { event, product: 'catch', planId: 'spark', reason: 'the amount differs' },
    ])
    delete shop.node.replaced.createInvoice
    assert.equal(shop.orders.isSelling(), false)
    assert.deepEqual(await open(shop), UNAVAILABLE)
    answers.resolve()
    await until('the node has answered', shop.orders.isSelling)
    await shop.quote()
  })
})

suite('an invoice that no order stores', () => {
  test('an instance whose node is slow answers with the invoice of the one that opened the order', async (t) => {
    const shop = await aShop(t)
    const node = holdingTheNode(shop)
    const slow = open(shop)
    await node.asked
    const quick = await open(shop, { at: shop.another() })
    node.answer()
    assert.deepEqual(await slow, quick)
    assert.equal(pendingQuote(quick).paymentHash, shop.node.invoices[0])
    assert.deepEqual(await orderIds(shop), [pendingQuote(quick).orderId])
    assert.equal(events(shop, 'order.quoted').length, 1)
  })
})

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
