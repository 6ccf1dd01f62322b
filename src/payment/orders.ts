/**
 * The life of an order: quote → settle → deliver → seal. One order has one invoice, whatever the
 * flow that shows it, and each step is one conditional update: whoever changes the row did it.
 */
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import type { Lightning } from '../lightning/lightning.ts'
import { createDelivering } from './delivering.ts'
import { createEnding } from './ending.ts'
import type { NodeHealth } from './health.ts'
import { isKeyOf, orderIds } from './idempotency.ts'
import type { PaymentLog } from './log.ts'
import {
  type Credential,
  isOver,
  type Offer,
  type OrderName,
  type OrderRequest,
  type Outcome,
  planOf,
  quoteOf,
  requestHash,
} from './order.ts'
import type { PlanId, Products } from './provisioning.ts'
import { createQuoting } from './quoting.ts'
import { reseal } from './resealing.ts'
import type { Secrets } from './secrets.ts'
import { createSettling } from './settling.ts'
import { createOrderStore, type OrderRow, type SettledBy } from './store.ts'

export {
  type Credential,
  type Offer,
  type OrderName,
  type OrderRequest,
  type Outcome,
  type Quote,
  REPLAY_MS,
} from './order.ts'

/** An order that exists: the same request gets it as it stands for its buyer. */
export type KnownOrder = {
  orderId: string
  planId: PlanId
  paymentHash: string
  repeat(request: OrderRequest, credential: Credential): Promise<Outcome>
}

export type Orders = {
  /** The order of this name, or null where there is none yet. */
  find(name: OrderName): Promise<KnownOrder | null>
  /** The order of an invoice that was opened with this key, from whatever address. */
  findPaid(paymentHash: string, key: string): Promise<KnownOrder | null>
  /** Whether a new order can be opened now: the node takes money. */
  isSelling(): boolean
  /** Opens an order and makes its invoice; of several at once, one does and all get the same. */
  open(name: OrderName, request: OrderRequest, offer: Offer): Promise<Outcome>
  /**
   * The order as the poll sees it. A key, when given, must be the order's own. `admit` is asked once
   * the order is known to be there, before anything comes of it; what it throws refuses the poll.
   */
  poll(
    orderId: string,
    ask: { key: string | null; isPrefetch: boolean; admit?: () => Promise<void> },
  ): Promise<Outcome>
  /** Asks the node about an order by its payment hash and acts on the answer. */
  reconcile(paymentHash: string, by: SettledBy): Promise<void>
  /** The same for an order at hand. False when the node could not be asked. */
  lookUp(order: OrderRow, by: SettledBy): Promise<boolean>
  /** Forgets orders that a process left before they had an invoice, with what they reserved. */
  dropAbandoned(before: number): Promise<void>
  /**
   * Re-encrypts what is sealed under an older secret.
   * @returns how many live orders were made under none of the configured secrets.
   */
  reseal(): Promise<number>
}

/** The orders of a store, at one node. */
export function createOrders(deps: {
  db: Db
  lightning: Lightning
  health: NodeHealth
  secrets: Secrets
  clock: Clock
  log: PaymentLog
  products: Products
  quoteSeconds: number
}): Orders {
  const { db, health, secrets, clock, products } = deps
  const store = createOrderStore(db)
  const end = createEnding({ db, products })
  const quoting = createQuoting({ ...deps, store, end })
  const { settle, lookUp, lookUpBriefly, refresh } = createSettling({ ...deps, store, end })
  const { answer, handOver } = createDelivering({ ...deps, store })

  /** A purchase looks for its order and then opens it, under the same name. */
  const ids = new WeakMap<OrderName, [string, ...string[]]>()

  function idsOf(name: OrderName): [string, ...string[]] {
    const known = ids.get(name) ?? orderIds(secrets, name)
    ids.set(name, known)
    return known
  }

  const isSame = (order: OrderRow, request: OrderRequest): boolean =>
    Buffer.from(order.request_hash).equals(requestHash(request, planOf(order)))

  /**
   * A preimage is proof by itself, while the quote stands; after that only the node can tell. It is
   * asked again about an order that was dead: some nodes have no final word, and a payment that came
   * while we were away is told of by nobody but the buyer.
   */
  async function redeem(order: OrderRow): Promise<Outcome> {
    const { state, quote_expires_at: standsUntil } = order
    if (state === 'pending' && standsUntil !== null && clock.now() < standsUntil) {
      const settled = await settle(order, 'preimage', 'now')
      if (settled) return handOver(settled.order, settled.seed)
    } else {
      await lookUpBriefly(order)
    }
    const current = await store.find([order.order_id])
    if (!current) return { kind: 'order not found' }
    // Never a challenge here: its holder would pay a second time.
    return current.state === 'pending' ? { kind: 'checkout unavailable' } : answer(current, true)
  }

  function known(order: OrderRow): KnownOrder {
    return {
      orderId: order.order_id,
      planId: order.plan_id,
      paymentHash: order.payment_hash ?? '',
      async repeat(request, credential) {
        if (!isSame(order, request)) {
          return { kind: 'idempotency key reused with a different request' }
        }
        const isDelivered = order.state === 'settled' && order.delivered_at !== null
        if (isDelivered && isOver(order, clock.now())) return { kind: 'already delivered' }
        if (order.state === 'refunded') return { kind: 'order refunded' }
        if (credential === 'refused') return { kind: 'credential refused', quote: quoteOf(order) }
        const isUnsettled = order.state === 'pending' || order.state === 'dead'
        if (credential === 'paid' && isUnsettled) return redeem(order)
        return answer(await refresh(order), true)
      },
    }
  }

  return {
    async find(name) {
      const order = await store.find(idsOf(name))
      return order && order.state !== 'opening' ? known(order) : null
    },

    async findPaid(paymentHash, key) {
      const order = await store.findByPaymentHash(paymentHash)
      return order && isKeyOf(secrets, key, order.key_hash) ? known(order) : null
    },

    isSelling: health.isHealthy,

    async open(name, request, offer) {
      if (!health.isHealthy()) return { kind: 'checkout unavailable' }
      const [orderId] = idsOf(name)
      const asked = requestHash(request, offer.plan)
      const opened = await quoting.open(orderId, name, request, offer, asked)
      if (opened.kind !== 'opened') return opened
      const { order } = opened
      // One that was there already may have been opened under another plan.
      if (!asked.equals(order.request_hash) && !isSame(order, request))
        return { kind: 'idempotency key reused with a different request' }
      return answer(order, true)
    },

    async poll(orderId, { key, isPrefetch, admit }) {
      const found = await store.find([orderId])
      if (!found || found.state === 'opening') return { kind: 'order not found' }
      await admit?.()
      if (key !== null && !isKeyOf(secrets, key, found.key_hash)) return { kind: 'order not found' }
      const order = await refresh(found)
      if (isPrefetch && order.state === 'settled') return { kind: 'pending', quote: quoteOf(order) }
      return answer(order, key !== null)
    },

    async reconcile(paymentHash, by) {
      const order = await store.findByPaymentHash(paymentHash)
      if (order?.state === 'pending' || order?.state === 'dead') await lookUp(order, by)
    },

    lookUp,
    dropAbandoned: quoting.dropAbandoned,
    reseal: () => reseal({ db, store, secrets, clock }),
  }
}
