import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { REPLAY_MS } from '../../src/payment/order.ts'
import { delivered, events, keyPoll, kinds, many, OTHER_KEY, plainPoll } from '../support/orders.ts'
import { aName, anOffer, aRequest, aShop, KEY, LIFE, SECOND } from '../support/shop.ts'

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

  test('a repeat with the key gets the same bytes again, by poll and by purchase', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paid()
    const { outcome } = delivered(await shop.orders.poll(orderId, plainPoll))
    shop.clock.advance(3600 * SECOND)
    const outcomes = [
      await shop.orders.poll(orderId, keyPoll),
      await shop.repeat(),
      await shop.orders.open(aName(), aRequest(), anOffer()),
      await shop.another().poll(orderId, keyPoll),
    ]
    assert.deepEqual(
      outcomes,
      outcomes.map(() => outcome),
    )
  })

  test('the repeat of a settled order is its first delivery', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paid()
    delivered(await shop.repeat())
    assert.deepEqual(await shop.orders.poll(orderId, plainPoll), { kind: 'already delivered' })
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

  test('the first use of a token seals the replay, and wipes the seed', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const { publicId } = delivered(await shop.orders.poll(quote.orderId, keyPoll))
    await shop.use(publicId)
    assert.deepEqual(await shop.orders.poll(quote.orderId, keyPoll), { kind: 'already delivered' })
    assert.deepEqual(await shop.repeat(), { kind: 'already delivered' })
    const order = await shop.order(quote)
    assert.deepEqual([order?.seed, order?.sealed_at], [null, shop.clock.now()])
    assert.equal(shop.node.invoices.length, 1)
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

  test('the expiry of the capability seals the replay', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paidAndSeen()
    shop.clock.advance(LIFE - SECOND)
    const { outcome } = delivered(await shop.orders.poll(orderId, plainPoll))
    shop.clock.advance(SECOND - 1)
    assert.deepEqual(await shop.repeat(), outcome)
    shop.clock.advance(1)
    assert.deepEqual(await shop.repeat(), { kind: 'already delivered' })
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

  test('the log names an order by its payment hash, and has nothing that opens it', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const { publicId, ownerToken } = delivered(await shop.orders.poll(quote.orderId, keyPoll))
    const log = JSON.stringify(shop.logged)
    for (const secret of [KEY, quote.bolt11, quote.orderId, publicId, ownerToken]) {
      assert.equal(log.includes(secret), false)
    }
  })
})
