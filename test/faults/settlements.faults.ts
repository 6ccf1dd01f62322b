import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { aShop, type Shop } from '../support/shop.ts'

const ORDERS = 30

/** Any order of them, each three times. */
function thriceShuffled<T>(things: T[]): T[] {
  return [...things, ...things, ...things]
    .map((thing) => ({ thing, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ thing }) => thing)
}

async function books(shop: Shop): Promise<unknown> {
  const orders = await shop.db.read(
    `select order_id, public_id, payment_hash, settled_by from purchase_order where state = 'settled'`,
  )
  const provisioned = await shop.provisioned()
  return {
    settled: orders.map(({ payment_hash }) => payment_hash).sort(),
    orphans: provisioned.filter((id) => !orders.some(({ public_id }) => public_id === id)),
    provisioned: provisioned.length,
  }
}

suite('the node tells of settlements badly', { timeout: 300_000 }, () => {
  test('an order is provisioned once when the node tells of it three times, in the wrong order, to two instances', async (t) => {
    const shop = await aShop(t)
    const other = shop.another()
    const quotes = await Promise.all(
      Array.from({ length: ORDERS }, () => shop.paid(crypto.randomUUID())),
    )
    const hashes = quotes.map(({ paymentHash }) => paymentHash)
    await Promise.all(
      thriceShuffled(hashes).map((hash, i) =>
        (i % 2 ? shop.orders : other).reconcile(hash, 'stream'),
      ),
    )
    assert.deepEqual(await books(shop), {
      settled: hashes.toSorted(),
      orphans: [],
      provisioned: ORDERS,
    })
  })

  test('an answer that comes after the order was settled otherwise changes nothing', async (t) => {
    const shop = await aShop(t)
    const quote = await shop.paid()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    shop.node.replaced.lookupInvoice = async (hash) => {
      const answer = await shop.node.simulator.lookupInvoice(hash)
      await held
      return answer
    }
    const late = shop.orders.reconcile(quote.paymentHash, 'stream')
    delete shop.node.replaced.lookupInvoice
    await shop.another().reconcile(quote.paymentHash, 'stream')
    const before = await shop.order(quote)
    release()
    await late
    assert.deepEqual(await shop.order(quote), before)
    assert.deepEqual(await books(shop), {
      settled: [quote.paymentHash],
      orphans: [],
      provisioned: 1,
    })
  })
})
