import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { UnknownInvoice } from '../../src/lightning/lightning.ts'
import { REPLAY_MS } from '../../src/payment/order.ts'
import {
  delivered,
  events,
  keyPoll,
  kinds,
  many,
  nodeSays,
  OTHER_KEY,
  plainPoll,
  QUOTE_LIFE,
} from '../support/orders.ts'
import { aShop, LIFE, SECOND } from '../support/shop.ts'

suite('settling an order', () => {
  test('settling provisions in the same unit, and the capability lives from then on', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    shop.clock.advance(5 * SECOND)
    const settledAt = shop.clock.now()
    const { publicId, expiresAt } = delivered(await shop.orders.poll(quote.orderId, plainPoll))
    assert.deepEqual(await shop.provisioned(), [publicId])
    assert.equal(Date.parse(expiresAt), settledAt + LIFE)
    const order = await shop.order(quote)
    assert.deepEqual(
      [order?.state, order?.settled_at, order?.settled_by, order?.public_id, order?.expires_at],
      ['settled', settledAt, 'lookup', publicId, settledAt + LIFE],
    )
  })

  test('an order past expiresAt stays pending until the node says that it is dead', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    nodeSays(shop, 'open')
    for (const wait of [QUOTE_LIFE, SECOND, 3600 * SECOND]) {
      shop.clock.advance(wait)
      assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'pending', quote })
      assert.deepEqual(await shop.repeat(), { kind: 'pending', quote })
    }
    nodeSays(shop, 'dead')
    shop.clock.advance(SECOND)
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'order expired' })
    assert.deepEqual(await shop.repeat(), { kind: 'order expired' })
    assert.equal(shop.node.invoices.length, 1)
  })

  test('a payment hash that the node does not know is an error, and dead by guess a week after its quote', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    shop.node.replaced.lookupInvoice = () => Promise.reject(new UnknownInvoice())
    const giveUp = quote.expiresAt + 7 * 24 * 3600 * SECOND
    shop.clock.advance(giveUp - shop.clock.now() - 2 * 3600 * SECOND)
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'pending', quote })
    const told = () => events(shop, 'order.invoice_unknown').map(({ paymentHash }) => paymentHash)
    assert.deepEqual(told(), [quote.paymentHash])
    // Somebody who polls on does not fill the log.
    for (const [seconds, times] of [
      [1, 1],
      [3598, 1],
      [1, 2],
    ] as const) {
      shop.clock.advance(seconds * SECOND)
      await shop.orders.poll(quote.orderId, plainPoll)
      assert.equal(told().length, times)
    }

    shop.clock.advance(giveUp - shop.clock.now() - 1)
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'pending', quote })
    // While the node is away it may know it.
    nodeSays(shop, 'nothing')
    shop.clock.advance(SECOND)
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'pending', quote })
    nodeSays(shop, 'unknown')
    shop.clock.advance(SECOND)
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), { kind: 'order expired' })
    assert.equal((await shop.order(quote))?.is_dead_final, 0)

    nodeSays(shop, 'settled')
    shop.clock.advance(SECOND)
    delivered(await shop.orders.poll(quote.orderId, plainPoll))
  })

  test('a hint is looked up, and one that is not true changes nothing', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.quote()
    const before = await shop.order(quote)
    await shop.orders.reconcile(quote.paymentHash, 'stream')
    await shop.orders.reconcile('00'.repeat(32), 'stream')
    assert.deepEqual(await shop.order(quote), before)
    assert.deepEqual(shop.node.lookups, [quote.paymentHash])
  })

  test('a payment that cannot be honoured is recorded as such, and logged once', async (t) => {
    const shop = await aShop(t, { isSoldOut: true })
    const quote = await shop.paid()
    await many(10, () => shop.orders.reconcile(quote.paymentHash, 'stream'))
    shop.clock.advance(SECOND)
    assert.deepEqual(await shop.orders.poll(quote.orderId, plainPoll), {
      kind: 'checkout unavailable',
    })
    assert.deepEqual(await shop.repeat(), { kind: 'checkout unavailable' })
    assert.deepEqual(events(shop, 'order.paid_unfulfilled'), [
      {
        event: 'order.paid_unfulfilled',
        paymentHash: quote.paymentHash,
        product: 'catch',
        amountSats: 100,
        by: 'stream',
        reason: 'the product refused',
      },
    ])
    const order = await shop.order(quote)
    assert.deepEqual(
      [order?.state, order?.settled_at, order?.settled_by, order?.seed, order?.public_id],
      ['paid_unfulfilled', shop.clock.now() - SECOND, 'stream', null, null],
    )
    assert.deepEqual(await shop.provisioned(), [])
  })

  test('the node is asked about an order at most once a second, whoever asks', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.quote()
    const elsewhere = shop.another()
    const ask = () =>
      Promise.all([
        ...Array.from({ length: 10 }, () => shop.orders.poll(orderId, plainPoll)),
        ...Array.from({ length: 10 }, () => elsewhere.poll(orderId, keyPoll)),
        ...Array.from({ length: 10 }, () => shop.repeat()),
      ])
    const counts: number[] = []
    for (const wait of [0, 0, SECOND - 1, 1, 1, SECOND]) {
      shop.clock.advance(wait)
      await ask()
      counts.push(shop.node.lookups.length)
    }
    assert.deepEqual(counts, [1, 1, 1, 2, 2, 3])
  })
})

suite('delivering an order', () => {
  test('a payment provisions and a plain poll delivers exactly once, whoever learns of it, and however many race', async (t) => {
    const shop = await aShop(t)
    const { orderId, paymentHash } = await shop.paid()
    const elsewhere = shop.another()
    const at = (i: number) => (i % 2 === 0 ? shop.orders : elsewhere)
    const [outcomes] = await Promise.all([
      many(20, (i) => at(i).poll(orderId, plainPoll)),
      many(20, (i) => at(i).reconcile(paymentHash, 'stream')),
    ])
    assert.equal((await shop.provisioned()).length, 1)
    assert.equal(events(shop, 'order.settled').length, 1)
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
})
