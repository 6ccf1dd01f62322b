/** Delivering: one update claims the delivery, and the answer is derived from the stored seed. */
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { openSeed, type Secrets } from '../secrets/secrets.ts'
import { type Claim, mayRepeat, reachFor, reachOf } from './claims.ts'
import { endOf, grantOf, isExtended, isOver, namedIn, type Outcome, quoteOf } from './order.ts'
import { type Products, provisioningOf } from './provisioning.ts'
import { deliverOrder, type OrderRow, type OrderStore } from './store.ts'

export type Delivering = {
  /**
   * The outcome for a client with this claim; delivers a paid order if the claim suffices. `claim` is called
   * only if the outcome depends on it, because judging a key takes as long as the rest.
   */
  answer(order: OrderRow, claim: () => Claim): Promise<Outcome>
  /** The outcome of an order whose delivery was claimed just now. `seed`: the plain one, if known. */
  handOver(delivered: OrderRow, seed?: Uint8Array): Outcome
}

const UNPROVEN = { kind: 'proof of payment required' } as const

/** Answers for orders in their current state, and delivers those that are settled. */
export function createDelivering(deps: {
  store: OrderStore
  secrets: Secrets
  clock: Clock
  log: Log
  products: Products
}): Delivering {
  const { store, secrets, clock, log, products } = deps

  async function answer(order: OrderRow, claim: () => Claim): Promise<Outcome> {
    switch (order.state) {
      case 'opening':
        return { kind: 'checkout unavailable' }
      case 'pending':
        return { kind: 'pending', quote: quoteOf(order) }
      case 'dead':
        return { kind: 'order expired' }
      case 'paid_unfulfilled':
        return order.contested > reachOf(claim()) ? UNPROVEN : { kind: 'checkout unavailable' }
      case 'refunded':
        return { kind: 'order refunded' }
      case 'settled':
        return order.delivered_at === null ? deliver(order, claim()) : replay(order, claim())
    }
  }

  async function deliver(order: OrderRow, claim: Claim): Promise<Outcome> {
    const now = clock.now()
    if (isOver(order, now)) return { kind: 'order expired' }
    const delivered = await store.one(
      order.order_id,
      deliverOrder(order.order_id, now, reachFor(order, claim)),
    )
    if (delivered) return handOver(delivered)
    const current = await store.find([order.order_id])
    if (!current) return { kind: 'order not found' }
    if (current.delivered_at !== null) return replay(current, claim)
    return isOver(current, now) ? { kind: 'order expired' } : UNPROVEN
  }

  function replay(order: OrderRow, claim: Claim): Outcome {
    const now = clock.now()
    if (mayRepeat(order, claim, now)) return deliveredAs(order)
    // Proof of payment would repeat the answer: say so to a client with the key, or of a contested order.
    const isRepeatable = !isOver(order, now) && (claim.by !== 'id' || order.contested !== 0)
    return isRepeatable ? UNPROVEN : { kind: 'already delivered' }
  }

  function handOver(order: OrderRow, seed?: Uint8Array): Outcome {
    log.info({ event: 'order.delivered', ...namedIn(order) })
    return deliveredAs(order, seed)
  }

  function deliveredAs(order: OrderRow, seed = openedSeed(order)): Outcome {
    const { payment_hash, settled_at } = order
    if (payment_hash === null || settled_at === null) throw new Error('the order is not settled')
    return {
      kind: 'delivered',
      body: settledPayment(order, seed, products),
      paymentHash: payment_hash,
      settledAt: settled_at,
    }
  }

  function openedSeed(order: OrderRow): Uint8Array {
    const opened = order.seed && openSeed(secrets, order.seed, order.order_id)
    if (!opened) throw new Error('the delivery seed of a settled order does not open')
    return opened.plain
  }

  return { answer, handOver }
}

/** The JSON of SettledPayment, or of an extension: the same bytes each time. */
export function settledPayment(order: OrderRow, seed: Uint8Array, products: Products): string {
  if (isExtended(order)) {
    return JSON.stringify({ settled: true, extended: true, expiresAt: endOf(order) })
  }
  const resource = provisioningOf(products, order.product).capability(grantOf(order, seed))
  return JSON.stringify({ settled: true, resource })
}
