/**
 * Delivery by the operator, to a buyer who has paid and cannot prove it to the service. It happens once,
 * like any delivery, and seals the order: the service never delivers the capability again.
 */
import { attempt, type Db, type Statement } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { openSeed, type Secrets } from '../secrets/secrets.ts'
import { settledPayment } from './delivering.ts'
import type { Products } from './provisioning.ts'
import { type Repair, repairOrder } from './repair.ts'
import { createOrderStore, type OrderRow, type OrderState } from './store.ts'

export type HandingOut =
  /**
   * `body` is the answer that the buyer would have got. There is no other copy of it. `extendedId` is what the order
   * has extended: then it has no token.
   */
  | { kind: 'handed out'; body: string; extendedId: string | null }
  | { kind: 'not settled'; state: OrderState }
  /** It was delivered, or is sealed: it is never delivered twice. */
  | { kind: 'already delivered'; at: number | null }
  /** The capability has expired; nobody collected it. */
  | { kind: 'over'; at: number }
  | Exclude<Repair, { kind: 'repaired' | 'not unfulfilled' }>

/** Hands out a paid order that was not delivered; provisions it first if it is unfulfilled. */
export async function handOutOrder(
  deps: { db: Db; secrets: Secrets; clock: Clock; products: Products },
  orderId: string,
): Promise<HandingOut> {
  const { db, secrets, clock, products } = deps
  const store = createOrderStore(db)
  const repair = await repairOrder(deps, orderId)
  if (repair.kind !== 'repaired' && repair.kind !== 'not unfulfilled') return repair
  const order = await store.find([orderId])
  const now = clock.now()
  const reason = refusalReason(order, now)
  if (reason || !order?.seed) return reason ?? { kind: 'already delivered', at: null }
  const opened = openSeed(secrets, order.seed, orderId)
  if (!opened) return { kind: 'other secret' }
  const body = settledPayment(order, opened.plain, products)
  const done = await attempt(
    db.write({ lockKey: orderId, statements: { order: handOut(orderId, now) } }),
  )
  const extendedId = order.public_id === null ? order.extends_id : null
  if ('rows' in done) return { kind: 'handed out', body, extendedId }
  // Somebody else was faster.
  const current = await store.find([orderId])
  return refusalReason(current, now) ?? { kind: 'already delivered', at: null }
}

function refusalReason(order: OrderRow | null, now: number): HandingOut | null {
  if (!order) return { kind: 'order not found' }
  if (order.state !== 'settled') return { kind: 'not settled', state: order.state }
  if (order.delivered_at !== null) return { kind: 'already delivered', at: order.delivered_at }
  if (order.expires_at !== null && order.expires_at <= now) {
    return { kind: 'over', at: order.expires_at }
  }
  return order.sealed_at === null ? null : { kind: 'already delivered', at: order.sealed_at }
}

/** Whether contested or not: the operator judges who the buyer is. */
const handOut = (orderId: string, now: number): Statement => ({
  text: `update purchase_order
    set delivered_at = $2, delivered_by = 'operator', sealed_at = $2, seed = null
    where order_id = $1 and state = 'settled' and delivered_at is null and sealed_at is null
      and expires_at > $2`,
  values: [orderId, now],
  expect: 1,
})
