/**
 * Which order a purchase is about: that of its key, or that of its credential. A program that makes
 * a key for each attempt comes back with the credential of what it paid, and must never be asked to
 * pay again for the same.
 */
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { type Presented, paymentHashIn } from './flows/flow.ts'
import { type Credential, isSameRequest, isSealed, type OrderRequest } from './order.ts'
import { isPast } from './past.ts'
import type { OrderRow, OrderStore } from './store.ts'

/** The order of a key, and whether the key is another name of it. */
export type Named = { order: OrderRow; isAlias: boolean }

export type Match =
  /** There is no such order yet. */
  | { kind: 'none' }
  /** A payment to us was proven, and its order is not in the store: an alarm. */
  | { kind: 'lost'; paymentHash: string }
  /** `by` says whether the key leads to the order, or only its credential does. */
  | { kind: 'order'; order: OrderRow; by: 'key' | 'alias' | 'credential'; credential: Credential }

export type Matching = (
  named: Named | null,
  request: OrderRequest,
  presented: Presented<unknown>,
) => Promise<Match>

export function createMatching(deps: { db: Db; store: OrderStore; clock: Clock }): Matching {
  const { db, store, clock } = deps

  return async (named, request, presented) => {
    const byKey = (credential: Credential): Match =>
      named
        ? { kind: 'order', order: named.order, by: named.isAlias ? 'alias' : 'key', credential }
        : { kind: 'none' }
    const paymentHash = paymentHashIn(presented)
    if (presented.kind === 'none') return byKey('none')
    if (paymentHash === null) return byKey('refused')

    const paid = await store.findByPaymentHash(paymentHash)
    if (paid && paid.order_id === named?.order.order_id) return byKey(standing(presented, paid))
    if (named && isDecided(named.order, request, clock.now())) return byKey('refused')
    if (!paid) {
      const isLost = presented.kind === 'right' && !(await isPast(db, paymentHash))
      return isLost ? { kind: 'lost', paymentHash } : byKey('refused')
    }
    // Made good as another product than its credential says: the operator has to look again.
    const isElse = paid.restored_at !== null && paid.product !== request.product
    if (isElse && presented.kind === 'right' && !isSealed(paid, clock.now())) {
      return { kind: 'lost', paymentHash }
    }
    // Another purchase, or one of which nothing more will come: this one is a purchase of its own.
    if (!isSameRequest(paid, request) || isSealed(paid, clock.now())) return byKey('refused')
    const credential = standing(presented, paid)
    return named && credential === 'refused'
      ? byKey('refused')
      : { kind: 'order', order: paid, by: 'credential', credential }
  }
}

/** Whether the answer to a key's own order is decided before any other credential counts. */
function isDecided(order: OrderRow, request: OrderRequest, now: number): boolean {
  return !isSameRequest(order, request) || isSealed(order, now)
}

/** What a credential with this order's payment hash is to it. */
function standing(presented: Presented<unknown>, order: OrderRow): Credential {
  if (presented.kind === 'misplaced') return 'misplaced'
  if (presented.kind !== 'right') return 'refused'
  // The payment hash says whose it is. What was made good may have another id and plan than it had.
  if (order.restored_at !== null) return 'paid'
  const { orderId = order.order_id, planId = order.plan_id } = presented.order
  return orderId === order.order_id && planId === order.plan_id ? 'paid' : 'refused'
}
