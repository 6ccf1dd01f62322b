import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { delivered, events, many, nodeSays, plainPoll, QUOTE_LIFE } from '../support/orders.ts'
import { aRequest, aShop, SECOND } from '../support/shop.ts'

suite('a credential', () => {
  test('a credential that proves the payment settles and delivers, without a call to the node', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const { publicId } = delivered(await shop.repeat({ credential: 'verified' }))
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

  test('a credential that is refused takes nothing, and shows nothing to pay once the order is paid', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const refused = { kind: 'invalid credential', quote }
    assert.deepEqual(await shop.repeat({ credential: 'invalid' }), refused)
    await shop.pay(quote)
    shop.clock.advance(SECOND)
    const unpayable = { kind: 'invalid credential', quote: null }
    assert.deepEqual(await shop.repeat({ credential: 'invalid' }), unpayable, 'the node was asked')
    assert.equal((await shop.order(quote))?.delivered_at, null)
    delivered(await shop.orders.poll(quote.orderId, plainPoll))
    assert.deepEqual(await shop.repeat({ credential: 'invalid' }), unpayable)
  })

  test('a credential of an order whose replay is sealed gets no challenge to pay again', async (t) => {
    const shop = await aShop(t)
    await shop.quote()
    const { publicId } = delivered(await shop.repeat({ credential: 'verified' }))
    await shop.use(publicId)
    for (const credential of ['verified', 'invalid', 'none'] as const) {
      assert.deepEqual(await shop.repeat({ credential }), { kind: 'already delivered' })
    }
  })

  test('a credential of another plan than the order’s is refused as such', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const request = aRequest({ planId: 'long' })
    assert.deepEqual(await shop.repeat({ request, credential: 'verified' }), {
      kind: 'idempotency key reused with a different request',
    })
    assert.equal((await shop.order(quote))?.state, 'pending')
  })

  test('a credential proves the payment after expiresAt too, whatever the node says or does not', async (t) => {
    for (const answer of ['open', 'dead', 'nothing', 'unknown'] as const) {
      const shop = await aShop(t)
      await shop.quote()
      shop.clock.advance(QUOTE_LIFE)
      nodeSays(shop, answer)
      const { publicId } = delivered(await shop.repeat({ credential: 'verified' }))
      assert.deepEqual(await shop.provisioned(), [publicId], answer)
      assert.deepEqual(shop.node.lookups, [], 'the node was not asked')
    }
  })

  test('a credential settles an order that was dead, which nobody else can', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    shop.clock.advance(QUOTE_LIFE)
    nodeSays(shop, 'dead')
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'order expired' })
    for (const credential of ['none', 'invalid'] as const) {
      assert.deepEqual(await shop.repeat({ credential }), { kind: 'order expired' }, credential)
    }
    const { outcome } = delivered(await shop.repeat({ credential: 'verified' }))
    assert.deepEqual(await shop.repeat({ credential: 'verified' }), outcome)
    assert.equal((await shop.order(quote))?.settled_by, 'preimage')
  })
})
