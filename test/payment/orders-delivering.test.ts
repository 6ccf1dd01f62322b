import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { REPLAY_MS } from '../../src/payment/order.ts'
import { delivered, events, keyPoll, kinds, many, OTHER_KEY, plainPoll } from '../support/orders.ts'
import { aShop, LIFE } from '../support/shop.ts'

suite('delivering an order', () => {
  test('a plain poll delivers exactly once, however many race', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paid()
    const elsewhere = shop.another()
    const outcomes = await many(20, (i) =>
      (i % 2 === 0 ? shop.orders : elsewhere).poll(orderId, plainPoll),
    )
    assert.equal(kinds(outcomes).filter((kind) => kind === 'delivered').length, 1)
    assert.deepEqual(await shop.orders.poll(orderId, plainPoll), { kind: 'already delivered' })
    assert.equal(events(shop, 'order.delivered').length, 1)
  })

  test('a credential that comes 50 times at once provisions once, and gets the same bytes each time', async (t) => {
    const shop = await aShop(t)
    await shop.quote()
    const elsewhere = shop.another()
    const outcomes = await many(50, (i) =>
      shop.repeat({ credential: 'verified', at: i % 2 === 0 ? shop.orders : elsewhere }),
    )
    const { outcome, publicId } = delivered(outcomes[0] ?? null)
    assert.deepEqual(
      outcomes,
      outcomes.map(() => outcome),
    )
    assert.deepEqual(await shop.provisioned(), [publicId])
    assert.equal(events(shop, 'order.delivered').length, 1)
  })

  test('a poll with another order’s key finds nothing, and consumes nothing', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paid()
    await shop.paid(OTHER_KEY)
    assert.deepEqual(await shop.orders.poll(orderId, { key: OTHER_KEY, isPrefetch: false }), {
      kind: 'order not found',
    })
    delivered(await shop.orders.poll(orderId, plainPoll))
  })

  test('24 hours after the first delivery the replay is sealed', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paid()
    const { outcome } = delivered(await shop.orders.poll(orderId, plainPoll))
    shop.clock.advance(REPLAY_MS - 1)
    assert.deepEqual(await shop.repeat(), outcome)
    shop.clock.advance(1)
    assert.deepEqual(await shop.repeat(), { kind: 'already delivered' })
    assert.deepEqual(await shop.orders.poll(orderId, keyPoll), { kind: 'already delivered' })
  })

  test('a capability that nobody collected can be claimed until it expires', async (t) => {
    const shop = await aShop(t)
    const early = await shop.paid()
    const late = await shop.paid(OTHER_KEY)
    for (const { paymentHash } of [early, late]) await shop.orders.reconcile(paymentHash, 'stream')
    shop.clock.advance(LIFE - 1)
    delivered(await shop.orders.poll(early.orderId, plainPoll))
    shop.clock.advance(1)
    assert.deepEqual(await shop.orders.poll(late.orderId, plainPoll), { kind: 'order expired' })
    assert.deepEqual(await shop.repeat({ key: OTHER_KEY }), { kind: 'order expired' })
  })
})
