/** Deleting what is over where another instance changes it at once, whichever engine the other tests have. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnitRefused } from '../../src/db/db.ts'
import { holdOrder, insertAlias, settleOrder } from '../../src/payment/store.ts'
import { KEEP_DEAD_MS, purgeOrders } from '../../src/payment/tombstones.ts'
import { duringChange } from '../support/locks.ts'
import { set } from '../support/orders.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { aShop, DAY } from '../support/shop.ts'
import { query } from '../support/store.ts'
import { unit } from '../support/unit.ts'

test('an order that another instance settles while it is deleted keeps its row and its names', async (t) => {
  const databaseUrl = await aPostgresDatabase()
  const shop = await aShop(t, { databaseUrl })
  const { orderId } = await shop.quote()
  await shop.quote('a key of the order that stays dead')
  await set(shop, `state = 'dead'`)
  shop.clock.advance(31 * DAY)
  const now = shop.clock.now()

  const settled = settleOrder(orderId, {
    settled_at: now,
    settled_by: 'preimage',
    public_id: 'catch_paid',
    seed: new Uint8Array([7]),
    expires_at: now + DAY,
    delivered_at: null,
  })
  await duringChange(t, { databaseUrl, change: [settled] }, () =>
    shop.db.write(unit(...purgeOrders(now - 30 * DAY, now))),
  )

  const orders = await query(shop, 'select order_id, state from purchase_order')
  assert.deepEqual(orders, [{ order_id: orderId, state: 'settled' }])
  assert.deepEqual(await query(shop, 'select name from order_name'), [{ name: orderId }])
})

test('a key gets no name of an order that another instance deletes meanwhile', async (t) => {
  const databaseUrl = await aPostgresDatabase()
  const shop = await aShop(t, { databaseUrl })
  const { orderId } = await shop.quote()
  await set(shop, `state = 'dead'`)
  shop.clock.advance(31 * DAY)
  const now = shop.clock.now()
  const naming = unit(holdOrder(orderId), insertAlias('the name of another key', orderId))
  await duringChange(t, { databaseUrl, change: purgeOrders(now, now) }, () =>
    assert.rejects(shop.db.write(naming), UnitRefused),
  )
  assert.deepEqual(await query(shop, 'select name from order_name'), [])
})

test('the tombstone of an unpaid order that another instance finds paid and over meanwhile stays', async (t) => {
  const databaseUrl = await aPostgresDatabase()
  const shop = await aShop(t, { databaseUrl })
  const now = shop.clock.now()
  const dead = {
    text: `insert into order_tombstone values ('a', 'dead', 0), ('b', 'dead', 0)`,
    values: [],
  }
  await shop.db.write(unit(dead))
  const used = {
    text: `update order_tombstone set ended = 'used', ended_at = $1 where payment_hash = 'b'`,
    values: [now],
  }
  await duringChange(t, { databaseUrl, change: [used] }, () =>
    shop.db.write(unit(...purgeOrders(now, now + KEEP_DEAD_MS + 1))),
  )
  const left = await query(shop, 'select payment_hash, ended from order_tombstone')
  assert.deepEqual(left, [{ payment_hash: 'b', ended: 'used' }])
})
