/** The limit of unpaid orders where transactions do not see each other, whichever engine the other tests have. */

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import type { Db, Statement } from '../../src/db/db.ts'
import { insertOrder, limitOpen, lockKeyOfTurn, takeTurn } from '../../src/payment/quoting.ts'
import { NEW_ORDER } from '../../src/payment/store.ts'
import { many } from '../support/orders.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { openDatabase, query } from '../support/store.ts'
import { aPool, inTransaction } from '../support/transactions.ts'

const MOST = 20

test('the limit of unpaid orders is exact where transactions do not see each other', async () => {
  const pool = await aPool()
  const opened = await many(100, (i) => inTransaction(pool, anOrder(`${i}`, '203.0.113', MOST)))
  await pool.end()
  assert.equal(opened.filter(Boolean).length, MOST)
})

test('two instances that open orders of many networks never wait for each other in a circle', async () => {
  const databaseUrl = await aPostgresDatabase()
  const stores = [await openDatabase(databaseUrl), await openDatabase(databaseUrl)]
  let orders = 0
  const buyer = async (store: Db, seed: number): Promise<void> => {
    for (let i = 0; i < 60; i++) {
      // Ids and networks in no order, and no two buyers in the same.
      const id = hash('sha256', `order ${orders++}`)
      const network = `network ${(seed * 37 + i * (2 * seed + 1)) % 100}`
      await store.write({
        lockKey: lockKeyOfTurn(network),
        statements: { all: anOrder(id, network, 2_000) },
      })
    }
  }
  await Promise.all(
    stores.flatMap((store, instance) =>
      Array.from({ length: 16 }, (_, i) => buyer(store, instance * 16 + i)),
    ),
  )
  for (const store of stores) await store.close()
  const deadlocks = 'select deadlocks from pg_stat_database where datname = current_database()'
  assert.deepEqual(await query({ databaseUrl }, deadlocks), [{ deadlocks: 0 }])
})

/** The statements that open an order. */
const anOrder = (id: string, clientNetwork: string, most: number): Statement[] => [
  takeTurn(clientNetwork),
  insertOrder({
    ...NEW_ORDER,
    order_id: `order_${id}`,
    secret_id: '',
    request_hash: Buffer.alloc(1),
    product: 'catch',
    plan_id: 'spark',
    plan: '{}',
    terms: 'null',
    amount_sats: 1,
    client_network: clientNetwork,
    opened_by: '',
    contested: 0,
    created_at: 0,
    network: 'regtest',
    bolt11: '',
    payment_hash: id,
    quote_expires_at: 9,
  }),
  limitOpen(clientNetwork, 1, most),
]
