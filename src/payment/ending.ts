/** Ending: the unit that ends an unpaid order also frees what it reserved. */
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Products } from './provisioning.ts'
import type { OrderRow } from './store.ts'

/** Runs the statement that ends an order; false when its condition did not hold. */
export type Ending = (
  statement: Statement,
  order: Pick<OrderRow, 'order_id' | 'product'>,
  /** What else ends with it. */
  also?: Statement[],
) => Promise<boolean>

/** Ends the orders of these products. */
export function createEnding({ db, products }: { db: Db; products: Products }): Ending {
  return async (statement, order, also = []) => {
    const release = products[order.product]?.release?.(order.order_id) ?? []
    const statements = { order: statement, release, also }
    return 'rows' in (await attempt(db.write({ lockKey: order.order_id, statements })))
  }
}
