import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { StoreAway } from '../../src/db/db.ts'
import { createSealing } from '../../src/payment/sealing.ts'
import { delivered, keyPoll, OTHER_KEY } from '../support/orders.ts'
import { aShop, KEY } from '../support/shop.ts'

async function aDelivered(t: Parameters<typeof aShop>[0]) {
  const shop = await aShop(t)
  const quote = await shop.paidAndSeen(KEY)
  const { publicId } = delivered(await shop.orders.poll(quote.orderId, keyPoll))
  return { shop, publicId, order: () => shop.order(quote) }
}

suite('sealing a delivery', () => {
  test('sealing a delivery changes its order alone, with the first use alone', async (t) => {
    const { shop, publicId, order } = await aDelivered(t)
    const other = await shop.paidAndSeen(OTHER_KEY)
    const sealing = createSealing(shop)
    const usedAt = shop.clock.now()
    await sealing.seal(publicId)
    assert.equal((await shop.order(other))?.sealed_at, null)
    const sealed = await order()
    assert.deepEqual([sealed?.sealed_at, sealed?.sealed_by, sealed?.seed], [usedAt, 'use', null])
    shop.clock.advance(1)
    assert.deepEqual(sealing.statements(publicId, shop.clock.now()), [])
    const write = shop.db.write
    shop.db.write = () => Promise.reject(new Error('nothing is to be written'))
    await sealing.seal(publicId)
    shop.db.write = write
    // Another instance does not know of it, and changes nothing.
    await createSealing(shop).seal(publicId)
    assert.deepEqual(await order(), sealed)
  })

  test('a delivery whose seal the store refused is sealed by the next use', async (t) => {
    const { shop, publicId, order } = await aDelivered(t)
    const sealing = createSealing(shop)
    const write = shop.db.write
    shop.db.write = () => Promise.reject(new StoreAway('full'))
    await assert.rejects(sealing.seal(publicId), StoreAway)
    shop.db.write = write
    await sealing.seal(publicId)
    assert.equal((await order())?.sealed_by, 'use')
  })

  test('a delivery is sealed by the next use if the unit of the first one was not committed', async (t) => {
    const { shop, publicId, order } = await aDelivered(t)
    const sealing = createSealing(shop)
    const now = shop.clock.now()
    assert.equal(sealing.statements(publicId, now).length, 1)
    await shop.db.write({
      lockKey: publicId,
      statements: { seal: sealing.statements(publicId, now) },
    })
    sealing.sealed(publicId)
    assert.deepEqual(sealing.statements(publicId, now), [])
    assert.equal((await order())?.sealed_at, now)
  })
})
