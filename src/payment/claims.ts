/**
 * Decides who may have the capability of an order. A stranger can guess a weak key. Once a weak key came
 * from another client than the one who opened the order, the order is contested: only proof of payment
 * gets the capability.
 */
import type { Secrets } from '../secrets/secrets.ts'
import { isClientOf } from './idempotency.ts'
import { isStrongKey } from './key-strength.ts'
import { isOver, isReplacement, type OrderName, WEAK_REPLAY_MS } from './order.ts'
import { CONTESTED, type Contested, contestOrder, type OrderRow, type OrderStore } from './store.ts'

/** What a client shows when it asks for the capability of an order. */
export type Claim = {
  /** `proof` is a preimage that opens the payment hash, `credential` one with a challenge of this service. */
  by: 'credential' | 'proof' | 'strong key' | 'weak key' | 'weak key and id' | 'weak alias' | 'id'
  /** Whether the client is the one who opened the order. */
  isOpener: boolean
}

export const PROOF: Claim = { by: 'proof', isOpener: false }
export const CREDENTIAL: Claim = { by: 'credential', isOpener: false }

/** Below every state of contest: not even an uncontested order is delivered. */
const NEVER = -1

/** How contested an order may be at most for this claim to get the capability. */
export function reachOf({ by, isOpener }: Claim): Contested | typeof NEVER {
  if (by === 'credential') return CONTESTED.credentialOnly
  if (by === 'proof' || by === 'strong key') return CONTESTED.beforePayment
  // The client who made the alias had proof of payment, and a stranger can guess the alias.
  if (by === 'weak alias') return NEVER
  // Contested only after the payment was seen: until then the id of the order was the buyer's secret.
  const isPoll = by === 'id' || by === 'weak key and id'
  return isPoll && isOpener ? CONTESTED.afterPayment : CONTESTED.no
}

/**
 * The same for this order. Who asks for an extension expects no tokens, and may let others repeat its request: what
 * is sold in its place takes proof of the payment.
 */
export function reachFor(order: OrderRow, claim: Claim): Contested | typeof NEVER {
  const isProof = claim.by === 'credential' || claim.by === 'proof'
  return isReplacement(order) && !isProof ? NEVER : reachOf(claim)
}

/** Whether the answer of a delivered order may be repeated to this claim. */
export function mayRepeat(order: OrderRow, claim: Claim, now: number): boolean {
  if (isOver(order, now) || order.contested > reachFor(order, claim)) return false
  if (['credential', 'proof', 'strong key'].includes(claim.by)) return true
  const deliveredAt = order.delivered_at ?? Number.NEGATIVE_INFINITY
  return claim.by === 'weak key and id' && now < deliveredAt + WEAK_REPLAY_MS
}

export type Claims = {
  /** The claim of a purchase, by its key. */
  ofKey(order: OrderRow, name: OrderName, isAlias: boolean): Claim
  /** The claim of a poll, with the order's key or without. */
  ofPoll(order: OrderRow, ask: { key: string | null; client: string | null }): Claim
  /**
   * The order after its key was used. It is contested from then on if the key is weak and came from
   * another client than the one who opened the order.
   */
  afterUse(order: OrderRow, name: OrderName): Promise<OrderRow>
}

export function createClaims({ store, secrets }: { store: OrderStore; secrets: Secrets }): Claims {
  const isOpenedBy = (order: OrderRow, client: string | null): boolean =>
    order.opened_by !== null && isClientOf(secrets, client, order.opened_by)

  return {
    ofKey: (order, { key, client }, isAlias) => ({
      by: isStrongKey(key) ? 'strong key' : isAlias ? 'weak alias' : 'weak key',
      isOpener: isOpenedBy(order, client),
    }),

    ofPoll: (order, { key, client }) => ({
      by: key === null ? 'id' : isStrongKey(key) ? 'strong key' : 'weak key and id',
      isOpener: isOpenedBy(order, client),
    }),

    async afterUse(order, { key, client }) {
      if (order.contested !== CONTESTED.no || order.opened_by === null) return order
      // The key last: judging it takes longer than all the rest, and most uses are by the opener.
      if (isOpenedBy(order, client) || isStrongKey(key)) return order
      const contested = await store.one(order.order_id, contestOrder(order.order_id))
      return contested ?? (await store.find([order.order_id])) ?? order
    },
  }
}
