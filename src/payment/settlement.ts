/**
 * The one settlement: it gives a paid order its public id, its seed and its end of life, and provisions what was sold,
 * in one unit, which also records the sale. The service and the operator both settle here.
 */
import { randomBytes } from 'node:crypto'
import { type Db, type Statement, StoreError } from '../db/db.ts'
import { type Secrets, seal } from '../secrets/secrets.ts'
import { endOfLife, grantOf, planOf } from './order.ts'
import { type Products, provisioningOf } from './provisioning.ts'
import { recordSale } from './sales.ts'
import { type OrderRow, type SettledBy, settleOrder, written } from './store.ts'

/**
 * How often an extension is tried: each try but the last was overtaken by another extension of the same
 * capability, or by what ended it.
 */
const MAX_TRIES = 100

export type Settlement =
  /** The order as it is now. `seed` is the plain one, which need not be opened again. */
  | { kind: 'settled'; order: OrderRow & { expires_at: number }; seed: Uint8Array }
  /** The condition of the transition did not hold: somebody else has changed the order. */
  | { kind: 'not applied' }
  /** The order itself cannot be settled, and would fail in the same way every time. */
  | { kind: 'failed'; fault: unknown }

export type SettlementDeps = { db: Db; secrets: Secrets; products: Products }

/**
 * Settles an order whose payment is proven, or changes nothing.
 * @throws StoreError when the store failed, which says nothing about the order.
 */
export async function settleSale(
  deps: SettlementDeps,
  order: OrderRow,
  step: {
    now: number
    /** How the payment was seen. */
    by: SettledBy | null
    /** If it is set, the same unit claims the delivery. */
    deliveredAt: number | null
    /** Whether an order that is owed is settled, too. */
    isOwedToo: boolean
    /** The statements that reserve again what the product released when the order died. */
    restored: Statement[]
  },
): Promise<Settlement> {
  const { now, by, deliveredAt, isOwedToo, restored } = step
  const { order_id: orderId, extends_id: extendsId } = order
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const seed = randomBytes(32)
    let sold: Sold
    try {
      sold = (await extended(deps, order, now)) ?? provisioned(deps, order, { now, seed })
    } catch (fault) {
      // A store that failed says nothing about the order.
      if (fault instanceof StoreError) throw fault
      return { kind: 'failed', fault }
    }
    const fields = {
      settled_at: now,
      settled_by: by,
      public_id: sold.publicId,
      // Every order that can be delivered has one; an extension derives nothing from it.
      seed: seal(deps.secrets.seedKeys[0], seed, orderId),
      expires_at: sold.expiresAt,
      delivered_at: deliveredAt,
    }
    const isExtension = sold.publicId === null
    const done = await written(deps.db, {
      // Whatever changes a capability has its id as the key.
      lockKey: (isExtension ? extendsId : null) ?? orderId,
      statements: {
        order: settleOrder(orderId, fields, isOwedToo),
        restored: isExtension ? [] : restored,
        provision: sold.statements,
        sold: recordSale(orderId),
      },
    })
    if ('rows' in done) {
      return { kind: 'settled', order: { ...order, ...fields, state: 'settled' }, seed }
    }
    if ('fault' in done) return { kind: 'failed', fault: done.fault }
    if (done.refused === 'order') return { kind: 'not applied' }
    // The capability was extended by another order meanwhile, or has ended: it is read again.
    if (isExtension) continue
    return { kind: 'failed', fault: new Error('the product refused') }
  }
  throw new StoreError('a capability changed each time that it was to be extended')
}

/** What a payment has bought, and the statements that make it. An extension has no public id of its own. */
type Sold = { publicId: string | null; expiresAt: number; statements: Statement[] }

/** Null if the order extends nothing, or cannot any more: then its plan is provisioned anew, because it is paid. */
async function extended(
  { db, products }: SettlementDeps,
  order: OrderRow,
  now: number,
): Promise<Sold | null> {
  const { extends_id: publicId } = order
  if (publicId === null) return null
  const { extend } = provisioningOf(products, order.product)
  const extension = await extend?.(db, { publicId, plan: planOf(order), now })
  return extension ? { publicId: null, ...extension } : null
}

function provisioned(
  { products }: SettlementDeps,
  order: OrderRow,
  { now, seed }: { now: number; seed: Uint8Array },
): Sold {
  const provisioning = provisioningOf(products, order.product)
  const publicId = provisioning.newPublicId()
  const expiresAt = endOfLife(planOf(order), now)
  const facts = { public_id: publicId, settled_at: now, expires_at: expiresAt }
  const statements = provisioning.provision(grantOf({ ...order, ...facts }, seed))
  return { publicId, expiresAt, statements }
}
