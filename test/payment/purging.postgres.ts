/** Deleting orders where another instance settles one of them at once, whichever engine the other tests have. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settleOrder } from '../../src/payment/store.ts'
import { purgeOrders } from '../../src/payment/tombstones.ts'
import { waits } from '../support/locks.ts'
import { set } from '../support/orders.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { aShop, DAY } from '../support/shop.ts'
import { openDatabase, query } from '../support/store.ts'
import { unit } from '../support/unit.ts'

test('an order that another instance settles while it is deleted keeps its row and its names', async (t) => {
  const databaseUrl = await aPostgresDatabase()
  const shop = await aShop(t, { databaseUrl })
  const elsewhere = await openDatabase(databaseUrl)
  t.after(() => elsewhere.close())
  const { orderId } = await shop.quote()
  await shop.quote('a key of the order that stays dead')
  await set(shop, `state = 'dead'`)
  shop.clock.advance(31 * DAY)
  const now = shop.clock.now()

  let purged: Promise<unknown> = Promise.resolve()
  await elsewhere.tx(async ({ run }) => {
    const settled = settleOrder(orderId, {
      settled_at: now,
      settled_by: 'preimage',
      public_id: 'catch_paid',
      seed: new Uint8Array([7]),
      expires_at: now + DAY,
      delivered_at: null,
    })
    await run(settled.text, ...settled.values)
    purged = shop.db.write(unit(...purgeOrders(now - 30 * DAY, now)))
    while (!(await waits(databaseUrl)));
  })
  await purged

  const orders = await query(shop, 'select order_id, state from purchase_order')
  assert.deepEqual(orders, [{ order_id: orderId, state: 'settled' }])
  assert.deepEqual(await query(shop, 'select name from order_name'), [{ name: orderId }])
})
