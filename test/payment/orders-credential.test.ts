import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { delivered, events, many, nodeSays, plainPoll, QUOTE_LIFE } from '../support/orders.ts'
import { aRequest, aShop, KEY } from '../support/shop.ts'

suite('a credential', () => {
  test('that proves the payment settles and delivers, without a call to the node', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const { publicId } = delivered(await shop.repeat({ credential: 'paid' }))
    assert.deepEqual(await shop.provisioned(), [publicId])
    assert.deepEqual(shop.node.lookups, [])
    const order = await shop.order(quote)
    const now = shop.clock.now()
    assert.deepEqual(
      [order?.state, order?.settled_by, order?.settled_at, order?.delivered_at],
      ['settled', 'preimage', now, now],
    )
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), {
      kind: 'already delivered',
    })
  })

  test('that comes 50 times at once provisions once, and gets the same bytes each time', async (t) => {
    const shop = await aShop(t)
    await shop.quote()
    const elsewhere = shop.another()
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        shop.repeat({ credential: 'paid', at: i % 2 === 0 ? shop.orders : elsewhere }),
      ),
    )
    const { outcome, publicId } = delivered(outcomes[0] ?? null)
    assert.deepEqual(
      outcomes,
      outcomes.map(() => outcome),
    )
    assert.deepEqual(await shop.provisioned(), [publicId])
    assert.equal(events(shop, 'order.delivered').length, 1)
  })

  test('and the settlement that the node tells of, at once, are one settlement', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const [outcome] = await Promise.all([
      shop.repeat({ credential: 'paid' }),
      shop.orders.reconcile(quote.paymentHash, 'stream'),
      shop.orders.reconcile(quote.paymentHash, 'lookup'),
    ])
    assert.deepEqual(await shop.provisioned(), [delivered(outcome).publicId])
    assert.equal(events(shop, 'order.settled').length, 1)
  })

  test('that is refused consumes nothing, whatever the state of the order', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const refused = { kind: 'credential refused', quote }
    assert.deepEqual(await shop.repeat({ credential: 'refused' }), refused)
    assert.equal((await shop.order(quote))?.state, 'pending')
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    assert.deepEqual(await shop.repeat({ credential: 'refused' }), refused)
    delivered(await shop.orders.poll(quote.orderId, plainPoll))
    assert.deepEqual(await shop.repeat({ credential: 'refused' }), refused)
  })

  test('of an order whose replay is sealed gets no challenge to pay again', async (t) => {
    const shop = await aShop(t)
    await shop.quote()
    const { publicId } = delivered(await shop.repeat({ credential: 'paid' }))
    await shop.use(publicId)
    for (const credential of ['paid', 'refused', 'none'] as const) {
      assert.deepEqual(await shop.repeat({ credential }), { kind: 'already delivered' })
    }
  })

  test('of another plan than the order’s is refused as such', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const request = aRequest({ planId: 'long' })
    assert.deepEqual(await shop.repeat({ request, credential: 'paid' }), {
      kind: 'idempotency key reused with a different request',
    })
    assert.equal((await shop.order(quote))?.state, 'pending')
  })

  test('after expiresAt is worth what the node says', async (t) => {
    const shop = await aShop(t)
    await shop.quote()
    shop.clock.advance(QUOTE_LIFE)
    const paid = () => shop.repeat({ credential: 'paid' })
    nodeSays(shop, 'open')
    assert.deepEqual(await paid(), { kind: 'checkout unavailable' })
    shop.node.replaced.lookupInvoice = () => Promise.reject(new Error('connection refused'))
    assert.deepEqual(await paid(), { kind: 'checkout unavailable' })
    nodeSays(shop, 'settled')
    delivered(await paid())
  })

  test('after expiresAt of an invoice that is dead finds the order expired', async (t) => {
    const shop = await aShop(t)
    await shop.quote()
    shop.clock.advance(QUOTE_LIFE)
    nodeSays(shop, 'dead')
    assert.deepEqual(await shop.repeat({ credential: 'paid' }), { kind: 'order expired' })
  })

  test('of an order that was dead is worth what the node says now', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    shop.clock.advance(QUOTE_LIFE)
    nodeSays(shop, 'dead')
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'order expired' })
    assert.deepEqual(await shop.repeat({ credential: 'paid' }), { kind: 'order expired' })
    nodeSays(shop, 'settled')
    assert.deepEqual(await shop.repeat({ credential: 'none' }), { kind: 'order expired' })
    delivered(await shop.repeat({ credential: 'paid' }))
  })

  test('that cannot be honoured is owed, and logged once', async (t) => {
    const shop = await aShop(t, { isSoldOut: true })
    const quote = await shop.quote()
    const outcomes = await many(10, () => shop.repeat({ credential: 'paid' }))
    assert.deepEqual(
      outcomes,
      outcomes.map(() => ({ kind: 'checkout unavailable' })),
    )
    assert.equal(events(shop, 'order.paid_unfulfilled').length, 1)
    assert.equal((await shop.order(quote))?.state, 'paid_unfulfilled')
  })

  test('finds its order from anywhere, with the key that it was opened with', async (t) => {
    const shop = await aShop(t)
    const weak = 'order-0001'
    const quote = await shop.quote(weak)
    const found = await shop.orders.findPaid(quote.paymentHash, weak)
    assert.equal(found?.orderId, quote.orderId)
    assert.equal(await shop.orders.findPaid(quote.paymentHash, KEY), null)
    assert.equal(await shop.orders.findPaid('00'.repeat(32), weak), null)
  })
})
