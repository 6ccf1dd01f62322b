/**
 * Finds the order of a purchase: by its key or by its credential. A program that makes a new key for each
 * attempt comes back with the credential that it paid for, and must never be asked to pay twice.
 */
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { type CheckedCredential, type CredentialStatus, paymentHashIn } from './flows/flow.ts'
import { isSameRequest, isSealed, type OrderRequest } from './order.ts'
import type { OrderRow, OrderStore } from './store.ts'
import { hasTombstone } from './tombstones.ts'

/** The order of a key, and whether the key is an alias for it. */
export type Named = { order: OrderRow; isAlias: boolean }

export type Match =
  /** There is no such order yet. */
  | { kind: 'none' }
  /** The credential proves a payment to us, but the store has no order for it: an alarm. */
  | { kind: 'lost'; paymentHash: string }
  /** `by` says whether the key leads to the order or only the credential does. */
  | { kind: 'order'; order: OrderRow; by: 'key' | 'alias' | 'credential'; status: CredentialStatus }

export type Matching = (
  named: Named | null,
  request: OrderRequest,
  credential: CheckedCredential<unknown>,
) => Promise<Match>

export function createMatching(deps: { db: Db; store: OrderStore; clock: Clock }): Matching {
  const { store, clock } = deps
  const isLost = createIsLost(deps)

  return async (named, request, credential) => {
    const byKey = (status: CredentialStatus): Match =>
      named
        ? { kind: 'order', order: named.order, by: named.isAlias ? 'alias' : 'key', status }
        : { kind: 'none' }
    const paymentHash = paymentHashIn(credential)
    if (credential.kind === 'none') return byKey('none')
    if (paymentHash === null) return byKey('invalid')

    // A payment hash belongs to one order. Most credentials come with the key of theirs.
    if (named?.order.payment_hash === paymentHash) return byKey(statusFor(named.order, credential))
    const paid = await store.findByPaymentHash(paymentHash)
    if (named && isDecided(named.order, request, clock.now())) return byKey('invalid')
    if (await isLost({ paymentHash, paid, request, credential }))
      return { kind: 'lost', paymentHash }
    if (!paid) return byKey('invalid')
    // The credential paid for another purchase, or for a finished one, so this is a new purchase.
    if (!isSameRequest(paid, request) || isSealed(paid, clock.now())) return byKey('invalid')
    const status = statusFor(paid, credential)
    return named && status === 'invalid'
      ? byKey('invalid')
      : { kind: 'order', order: paid, by: 'credential', status }
  }
}

/** Whether a credential proves a payment to us for which the store has no order: an alarm. */
export function createIsLost({ db, clock }: { db: Db; clock: Clock }) {
  return async ({
    paymentHash,
    paid,
    request,
    credential,
  }: {
    paymentHash: string
    paid: OrderRow | null
    request: OrderRequest
    credential: CheckedCredential<unknown>
  }): Promise<boolean> => {
    if (credential.kind !== 'verified') return false
    if (!paid) return !(await hasTombstone(db, paymentHash))
    // Restored as another product than its credential names: the operator has to look again.
    const isOtherProduct = paid.restored_at !== null && paid.product !== request.product
    return isOtherProduct && !isSealed(paid, clock.now())
  }
}

/** Whether the answer to a key's own order is decided before any other credential counts. */
function isDecided(order: OrderRow, request: OrderRequest, now: number): boolean {
  return !isSameRequest(order, request) || isSealed(order, now)
}

/** The status of a credential for the order whose payment hash it names. */
export function statusFor(
  order: OrderRow,
  credential: CheckedCredential<unknown>,
): CredentialStatus {
  if (credential.kind !== 'verified') return credential.kind
  // The payment hash identifies the order: a restored one may have another id and plan than it had.
  if (order.restored_at !== null) return 'verified'
  const { orderId = order.order_id, planId = order.plan_id } = credential.order
  return orderId === order.order_id && planId === order.plan_id ? 'verified' : 'invalid'
}
