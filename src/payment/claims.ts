/**
 * Who may have what an order sold. A key that can be guessed may be a stranger's, so an order whose
 * guessable key came from elsewhere is handed to proof of the payment alone.
 */

import type { Secrets } from '../secrets/secrets.ts'
import { isClientOf } from './idempotency.ts'
import { isStrongKey } from './key-strength.ts'
import { isOver, type OrderName, WEAK_REPLAY_MS } from './order.ts'
import { CONTESTED, type Contested, contestOrder, type OrderRow, type OrderStore } from './store.ts'

/** What somebody shows when asking for what an order sold. */
export type Claim = {
  /** `proof` is a preimage that opens the payment hash. */
  by: 'proof' | 'strong key' | 'weak key' | 'weak key and id' | 'weak alias' | 'id'
  /** Whether the one who asks is the client who opened the order. */
  isOpener: boolean
}

export const PROOF: Claim = { by: 'proof', isOpener: false }

/** Below any order. */
const NOWHERE = -1

/** How far an order may be contested for this claim to be handed the capability. */
export function reachOf({ by, isOpener }: Claim): Contested | typeof NOWHERE {
  if (by === 'proof' || by === 'strong key') return CONTESTED.beforePayment
  // Whoever made the alias had proof, and a stranger may guess it.
  if (by === 'weak alias') return NOWHERE
  // Contested only after the payment was seen: the id of the order is the buyer's own secret.
  const isPoll = by === 'id' || by === 'weak key and id'
  return isPoll && isOpener ? CONTESTED.afterPayment : CONTESTED.no
}

/** Whether the answer of a delivered order may be repeated for this claim. */
export function mayRepeat(order: OrderRow, claim: Claim, now: number): boolean {
  if (isOver(order, now) || order.contested > reachOf(claim)) return false
  if (claim.by === 'proof' || claim.by === 'strong key') return true
  const deliveredAt = order.delivered_at ?? Number.NEGATIVE_INFINITY
  return claim.by === 'weak key and id' && now < deliveredAt + WEAK_REPLAY_MS
}

export type Claims = {
  /** What the key of a purchase is worth. */
  ofKey(order: OrderRow, name: OrderName, isAlias: boolean): Claim
  /** What a poll is worth, with the order's key or without. */
  ofPoll(order: OrderRow, ask: { key: string | null; client: string | null }): Claim
  /**
   * The order after its key was used: contested from then on, where the key can be guessed and it
   * came from anybody but the client who opened the order.
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
      const isFree = order.opened_by === null || isStrongKey(key) || isOpenedBy(order, client)
      if (isFree || order.contested !== CONTESTED.no) return order
      const contested = await store.one(order.order_id, contestOrder(order.order_id))
      return contested ?? (await store.find([order.order_id])) ?? order
    },
  }
}
