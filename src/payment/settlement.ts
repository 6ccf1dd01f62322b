/**
 * The one settlement: it gives a paid order its public id, its seed and its end of life, and provisions
 * what was sold, in one unit, which also records the sale. The service, the operator's repair and the
 * operator's restore all settle here; each brings the statements that change the order's row, with their
 * condition.
 */
import { randomBytes } from 'node:crypto'
import { type Db, type Statement, StoreError } from '../db/db.ts'
import { type Secrets, seal } from '../secrets/secrets.ts'
import { endOfLife, grantOf, planOf } from './order.ts'
import { type Extension, type Products, provisioningOf } from './provisioning.ts'
import { recordSale } from './sales.ts'
import { type OrderRow, written } from './store.ts'

/** The part of an order that says what was sold. */
export type Sale = Pick<
  OrderRow,
  'order_id' | 'product' | 'plan_id' | 'plan' | 'terms' | 'extends_id'
>

/** What settlement writes into the order's row. `seed` is sealed. An extension has no public id of its own. */
export type SettledFields = {
  settled_at: number
  public_id: string | null
  seed: Uint8Array
  expires_at: number
}

/**
 * How often an extension is tried: each try but the last was overtaken by another extension of the same
 * capability, or by what ended it.
 */
const MAX_TRIES = 100

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
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const unit = (await extendingUnit(deps, sale, step)) ?? settlingUnit(deps, sale, step)
    if ('fault' in unit) return { kind: 'failed', fault: unit.fault }
    const { statements, fields, seed } = unit
    const isExtension = fields.public_id === null
    // Whatever changes a capability has its id as the key.
    const lockKey = (isExtension ? sale.extends_id : null) ?? sale.order_id
    const done = await written(deps.db, { lockKey, statements })
    if ('rows' in done) return { kind: 'settled', fields, seed }
    if ('fault' in done) return { kind: 'failed', fault: done.fault }
    if (done.refused === 'order') return { kind: 'not applied' }
    // The capability was extended by another order meanwhile, or has ended: it is read again.
    if (isExtension) continue
    return { kind: 'failed', fault: new Error('the product refused') }
  }
  throw new StoreError('a capability changed each time that it was to be extended')
}

/**
 * The statements that extend the capability of the sale in one unit. Null if the sale extends none, or that one
 * cannot be extended any more: then the plan is provisioned anew, because it is paid.
 */
async function extendingUnit(
  { db, secrets, products }: SettlementDeps,
  sale: Sale,
  { now, transition }: Step,
) {
  const { extends_id: publicId } = sale
  if (publicId === null) return null
  let extension: Extension | null | undefined
  try {
    const { extend } = provisioningOf(products, sale.product)
    extension = await extend?.(db, { publicId, plan: planOf(sale), now })
  } catch (fault) {
    // A store that failed says nothing about the sale.
    if (fault instanceof StoreError) throw fault
    return { fault }
  }
  if (!extension) return null
  const seed = randomBytes(32)
  const fields: SettledFields = {
    settled_at: now,
    public_id: null,
    // Every order that can be delivered has one; an extension derives nothing from it.
    seed: seal(secrets.seedKeys[0], seed, sale.order_id),
    expires_at: extension.expiresAt,
  }
  const statements: Record<'order' | 'restored' | 'provision' | 'sold', Statement | Statement[]> = {
    ...{ order: transition(fields), restored: [] },
    ...{ provision: extension.statements, sold: recordSale(sale.order_id) },
  }
  return { statements, fields, seed }
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
    const fields = {
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
