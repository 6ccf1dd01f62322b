import assert from 'node:assert/strict'
import { test } from 'node:test'
import { releaseUnpaid, reserveUnpaid } from '../../src/whisper/unpaid.ts'
import { aSharedStore } from '../support/locks.ts'
import { unit } from '../support/unit.ts'

const LIMITS = { perNetwork: 1_000_000, inAll: 4_000_000 }
const reserve = (orderId: string, bytes: number) =>
  reserveUnpaid({ orderId, clientNetwork: '192.0.2.1', bytes }, LIMITS)

const COUNTED = `select byte_count as bytes from whisper_unpaid where part = 'common'`

test('unpaid bytes that another instance reserves while the last ones are released are counted once', async (t) => {
  const { db, overtaken } = await aSharedStore(t)
  await db.write(unit(...reserve('order_1', 500)))
  await overtaken(reserve('order_2', 1_000), releaseUnpaid('order_1'))
  await overtaken(releaseUnpaid('order_2'), reserve('order_3', 250))
  assert.deepEqual(await db.read(COUNTED), [{ bytes: 250 }])
})

test('an order whose unpaid bytes two instances release at once is subtracted once', async (t) => {
  const { db, overtaken } = await aSharedStore(t)
  await db.write(unit(...reserve('order_1', 1_000), ...reserve('order_2', 500)))
  await overtaken(releaseUnpaid('order_2'), releaseUnpaid('order_2'))
  assert.deepEqual(await db.read(COUNTED), [{ bytes: 1_000 }])
})

test('an order that two instances reserve at once, the first of all, is counted', async (t) => {
  const { db, overtaken } = await aSharedStore(t)
  await overtaken(reserve('order_1', 1_000), reserve('order_2', 500))
  assert.deepEqual(await db.read(COUNTED), [{ bytes: 1_500 }])
})
