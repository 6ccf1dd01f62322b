import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { reseal } from '../../src/payment/sealing.ts'
import { createOrderStore } from '../../src/payment/store.ts'
import { fingerprints, seal, unseal } from '../../src/secrets/secrets.ts'
import { orderRows, SETTLED, T } from '../support/order-rows.ts'
import { delivered, keyPoll, nodeSays, OTHER_KEY, plainPoll } from '../support/orders.ts'
import { aShop, manualClock, SECRET, secretsOf } from '../support/shop.ts'

suite('changing the secret', () => {
  const NEW = '22'.repeat(32)
  const FOREIGN = '33'.repeat(32)

  test('changing the secret re-encrypts the seeds, so that the new secret opens them alone', async (t) => {
    const shop = await aShop(t)
    const { orderId } = await shop.paidAndSeen()
    assert.equal(await shop.another({ secrets: [NEW, SECRET] }).reseal(), 0)
    delivered(await shop.another({ secrets: [NEW] }).poll(orderId, plainPoll))
  })

  test('changing the secret gives no seed back to an order whose delivery is sealed meanwhile', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paidAndSeen()
    const { public_id } = (await shop.order(quote)) ?? {}
    const store = createOrderStore(shop.db)
    await reseal({
      db: shop.db,
      clock: shop.clock,
      secrets: secretsOf(NEW, SECRET),
      store: {
        ...store,
        // A first use of the token between the reading of the seed and its writing.
        async withSeed(after, limit) {
          const orders = await store.withSeed(after, limit)
          if (orders.length > 0) await shop.use(String(public_id))
          return orders
        },
      },
    })
    const order = await shop.order(quote)
    assert.notEqual(order?.sealed_at, null)
    assert.equal(order?.seed, null)
  })

  test('changing the secret re-encrypts each seed of the previous one, however many, and touches no other', async (t) => {
    const { store, add, row, db } = await orderRows(t)
    const secrets = secretsOf(NEW, SECRET)
    const [current] = secretsOf(NEW).seedKeys
    const [previous] = secretsOf(SECRET).seedKeys
    const [foreign] = secretsOf(FOREIGN).seedKeys
    const plain = (i: number) => new Uint8Array(32).fill(i % 251)
    const [ours] = fingerprints(secrets)
    const settled = { ...SETTLED, secret_id: ours }
    const old = Array.from({ length: 501 }, (_, i) => `order_${1_000 + i}`)
    for (const [i, id] of old.entries()) {
      await add(id, { ...settled, seed: seal(previous, plain(i), id) })
    }
    // Before, between and after them.
    const others = {
      order_0: seal(foreign, plain(1), 'order_0'),
      order_1250b: seal(current, plain(2), 'order_1250b'),
      order_9: new Uint8Array([1]),
    }
    for (const [id, seed] of Object.entries(others)) await add(id, { ...settled, seed })
    await add('order_wiped', { ...settled, seed: null })
    await add('order_lost', { secret_id: 'foreign' })

    assert.equal(await reseal({ db, store, secrets, clock: manualClock(T) }), 1)
    for (const [i, id] of old.entries()) {
      const { seed } = await row(id)
      assert.ok(seed)
      const opened = unseal(secrets.seedKeys, seed, id)
      assert.ok(opened?.isCurrent, id)
      assert.deepEqual(new Uint8Array(opened.plain), plain(i))
    }
    for (const [id, seed] of Object.entries(others)) {
      assert.deepEqual(new Uint8Array((await row(id)).seed ?? []), new Uint8Array(seed))
    }
    assert.equal((await row('order_wiped')).seed, null)
  })

  test('an order is found by its key under the previous secret too', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const both = shop.another({ secrets: [NEW, SECRET] })
    await both.reseal()
    const { outcome } = delivered(await shop.repeat({ at: both }))
    assert.deepEqual(await both.poll(quote.orderId, keyPoll), outcome)
    assert.equal(shop.node.invoices.length, 1)
  })

  test('the previous secret is needed for as long as an order of it is open or uncollected', async (t) => {
    const shop = await aShop(t)
    const foreign = () => shop.another({ secrets: [FOREIGN] }).reseal()
    const settled = await shop.paidAndSeen()
    const pending = await shop.quote(OTHER_KEY)
    assert.equal(await foreign(), 2)
    assert.equal(await shop.orders.reseal(), 0)

    const { publicId } = delivered(await shop.orders.poll(settled.orderId, plainPoll))
    await shop.use(publicId)
    assert.equal(await foreign(), 1)
    nodeSays(shop, 'dead')
    await shop.orders.poll(pending.orderId, plainPoll)
    assert.equal(await foreign(), 0)
  })
})
