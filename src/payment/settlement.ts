/**
 * The one settlement: it gives a paid order its public id, its seed and its end of life, and provisions
 * what was sold, in one unit, which also records the sale. The service, the operator's repair and the
 * operator's restore all settle here; each brings the statements that change the order's row, with their
 * condition.
 */
import { randomBytes } from 'node:crypto'
import type { Db, Statement } from '../db/db.ts'
import { type Secrets, seal } from '../secrets/secrets.ts'
import { endOfLife, grantOf, planOf } from './order.ts'
import { type Products, provisioningOf } from './provisioning.ts'
import { recordSale } from './sales.ts'
import { type OrderRow, written } from './store.ts'

/** The part of an order that says what was sold. */
export type Sale = Pick<OrderRow, 'order_id' | 'product' | 'plan_id' | 'plan' | 'terms'>

/** What settlement writes into the order's row. `seed` is sealed. */
export type SettledFields = {
  settled_at: number
  public_id: string
  seed: Uint8Array
  expires_at: number
}

export type Settlement =
  /** `seed` is the plain one, which need not be opened again. */
  | { kind: 'settled'; fields: SettledFields; seed: Uint8Array }
  /** The condition of the transition did not hold: somebody else has changed the order. */
  | { kind: 'not applied' }
  /** The sale itself cannot be settled, and would fail in the same way every time. */
  | { kind: 'failed'; fault: unknown }

export type SettlementDeps = { db: Db; secrets: Secrets; products: Products }

type Step = {
  now: number
  /** The statements that change the order's row, if it is still as they expect it. */
  transition: (fields: SettledFields) => Statement[]
  /** The statements that reserve again what the product released when the order died. */
  restored?: Statement[]
}

/**
 * Settles a sale whose payment is proven, or changes nothing.
 * @throws StoreError when the store failed, which says nothing about the order.
 */
export async function settleSale(
  deps: SettlementDeps,
  sale: Sale,
  step: Step,
): Promise<Settlement> {
  const unit = settlingUnit(deps, sale, step)
  if ('fault' in unit) return { kind: 'failed', fault: unit.fault }
  const { statements, fields, seed } = unit
  const done = await written(deps.db, { lockKey: sale.order_id, statements })
  if ('rows' in done) return { kind: 'settled', fields, seed }
  if ('fault' in done) return { kind: 'failed', fault: done.fault }
  return done.refused === 'order'
    ? { kind: 'not applied' }
    : { kind: 'failed', fault: new Error('the product refused') }
}

/** The statements that settle the sale in one unit, or the fault that makes this impossible. */
function settlingUnit(
  { secrets, products }: SettlementDeps,
  sale: Sale,
  { now, transition, restored = [] }: Step,
) {
  try {
    const provisioning = provisioningOf(products, sale.product)
    const seed = randomBytes(32)
    const fields: SettledFields = {
      settled_at: now,
      public_id: provisioning.newPublicId(),
      seed: seal(secrets.seedKeys[0], seed, sale.order_id),
      expires_at: endOfLife(planOf(sale), now),
    }
    const provision = provisioning.provision(grantOf({ ...sale, ...fields }, seed))
    const sold = recordSale(sale.order_id)
    return { statements: { order: transition(fields), restored, provision, sold }, fields, seed }
  } catch (fault) {
    return { fault }
  }
}
