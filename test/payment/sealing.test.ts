import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type Db, StoreAway } from '../../src/db/db.ts'
import { createSealing } from '../../src/payment/sealing.ts'
import { delivered, keyPoll } from '../support/orders.ts'
import { aShop, KEY, SECRET } from '../support/shop.ts'

async function aDelivered(t: Parameters<typeof aShop>[0]) {
  const shop = await aShop(t)
  const quote = await shop.paidAndSeen(KEY)
  const { publicId } = delivered(await shop.orders.poll(quote.orderId, keyPoll))
  return { shop, publicId, order: () => shop.order(quote) }
}

test('a start under a new secret goes on once every seed is sealed under it', async (t) => {
  const { shop, order } = await aDelivered(t)
  const before = (await order())?.seed
  let underWay = 0
  const slow: Db = {
    ...shop.db,
    async write(one) {
      underWay++
      for (let i = 0; i < 20; i++) await turn()
      return shop.db.write(one).finally(() => underWay--)
    },
  }
  const another = shop.another({ secrets: ['22'.repeat(32), SECRET] }, slow)
  assert.equal(await another.reseal(), 0)
  assert.equal(underWay, 0)
  assert.notDeepEqual((await order())?.seed, before)
})

suite('sealing a delivery', () => {
  test('sealing a delivery changes the order with the first use alone', async (t) => {
    const { shop, publicId, order } = await aDelivered(t)
    const sealing = createSealing(shop)
    const usedAt = shop.clock.now()
    await sealing.seal(publicId)
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
