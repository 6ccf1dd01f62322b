/** Rows of orders as the statements of a release leave them, for tests of those statements. */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { type Row, type Statement, UnitRefused, type Value } from '../../src/db/db.ts'
import { createOrderStore, type OrderRow } from '../../src/payment/store.ts'
import type { After } from './folder.ts'
import { aMigratedDatabaseUrl, openDatabase } from './store.ts'
import { unit } from './unit.ts'

export const T = 1_800_000_000_000
const SOME_HASH = new Uint8Array([1])

/** A store, and orders in it that differ from a pending one only in what is given. */
export async function orderRows(t: After) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  const store = createOrderStore(db)
  const run = async (...statements: Statement[]) => (await db.write(unit(...statements))).all
  const insert = (table: string, row: Record<string, Value>) => {
    const columns = Object.keys(row)
    const text = `insert into ${table} (${columns.join(', ')}) values (${columns.map((_, i) => `$${i + 1}`).join(', ')})`
    return run({ text, values: Object.values(row) })
  }
  /** Each order by its id. Bytes come as a Buffer from one engine only. */
  const all = async () => {
    const rows = await db.read<OrderRow>('select * from purchase_order order by order_id')
    const plain = (value: unknown) => (value instanceof Uint8Array ? [...value] : value)
    return Object.fromEntries(
      rows.map((row) => [
        row.order_id,
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)])),
      ]),
    )
  }
  return {
    db,
    run,
    insert,
    store,
    /**
     * The columns that a statement changes, by order, of all orders in the store; null for one that it deletes.
     * `refused` if it refuses its unit.
     */
    async changes(statement: Statement): Promise<Record<string, unknown> | 'refused'> {
      const earlier = await all()
      try {
        await run(statement)
      } catch (error) {
        if (!(error instanceof UnitRefused)) throw error
        assert.deepEqual(await all(), earlier)
        return 'refused'
      }
      const later = await all()
      const differences = Object.entries(earlier).map(([id, columns]) => {
        const now = later[id]
        const changed =
          now && Object.entries(now).filter(([k, v]) => !isDeepStrictEqual(v, columns[k]))
        return [id, changed ? Object.fromEntries(changed) : null] as const
      })
      return Object.fromEntries(
        differences.filter(([, one]) => one === null || Object.keys(one).length > 0),
      )
    },
    async add(orderId: string, some: Partial<OrderRow> = {}): Promise<void> {
      await insert('purchase_order', {
        order_id: orderId,
        secret_id: 'secret',
        request_hash: SOME_HASH,
        product: 'catch',
        plan_id: 'standard',
        plan: '{}',
        terms: 'null',
        amount_sats: 5,
        client_network: 'n',
        state: 'pending',
        created_at: T,
        network: 'mainnet',
        bolt11: 'ln',
        payment_hash: `hash of ${orderId}`,
        quote_expires_at: T + 5,
        looked_up_at: T,
        opened_by: 'client',
        contested: 0,
        ...(some as Record<string, Value>),
      })
    },
    async row(orderId: string): Promise<OrderRow> {
      return (await store.find(orderId)) ?? assert.fail(`${orderId} is gone`)
    },
    /** The ids of the orders that these rows are of, in their order. */
    ids: (rows: Row[]): string => rows.map(({ order_id }) => order_id).join(' '),
  }
}

/** The columns of an order that waits for its delivery. */
export const SETTLED: Partial<OrderRow> = {
  state: 'settled',
  settled_at: T,
  settled_by: 'stream',
  expires_at: T + 100,
  seed: new Uint8Array([7]),
  delivered_at: null,
  sealed_at: null,
}

/** An order whose capability was handed out, and may be again. */
export const deliveredOrder = (product: string, publicId: string): Statement => ({
  text: `insert into purchase_order
    (order_id, secret_id, request_hash, product, plan_id, plan, terms, amount_sats,
     client_network, state, created_at, looked_up_at, network, bolt11, payment_hash, quote_expires_at,
     settled_at, public_id, seed,
     expires_at, delivered_at, opened_by, contested)
    values ('order_0', '', $1, $3, 'spark', '{}', 'null', 1, '', 'settled', 0, 0, 'regtest', '', '', 0, 0, $2,
      $1, 10, 0, '', 0)`,
  values: [Buffer.alloc(32), publicId, product],
})
