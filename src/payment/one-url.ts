/**
 * Purchases of one URL: the address says product and plan, and the request has no key. Each request without
 * a credential opens an order of its own, and only the credential that it leads to names that order and
 * delivers it.
 */
import { randomBytes } from 'node:crypto'
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { CREDENTIAL } from './claims.ts'
import type { Delivering } from './delivering.ts'
import { type CheckedCredential, paymentHashIn } from './flows/flow.ts'
import type { NodeHealth } from './health.ts'
import { orderIds } from './idempotency.ts'
import { createIsLost, statusFor } from './matching.ts'
import {
  isOver,
  isSameRequest,
  isSealed,
  type Offer,
  type OrderName,
  type OrderRequest,
  type Outcome,
  quoteOf,
  requestHash,
} from './order.ts'
import type { Quoting } from './quoting.ts'
import type { Settling } from './settling.ts'
import { CONTESTED, type OrderRow, type OrderStore } from './store.ts'

/** Names no route, so that no key of a buyer can lead to such an order. */
const NO_ROUTE = 'one url'
const KEY_BYTES = 32

/** It is paid and can be delivered, but this request may not deliver. */
export type Deliverable = { kind: 'deliverable'; paymentHash: string; settledAt: number }

export type OneUrl = {
  /**
   * The outcome of the order that the credential names, or null: then this is a new purchase. `admit` is
   * called once the order is found and before it changes; if it throws, the request is refused.
   */
  answer(
    request: OrderRequest,
    credential: CheckedCredential<unknown>,
    ask: {
      mayDeliver: boolean
      admit: (order: { orderId: string; isProven: boolean }) => Promise<void>
    },
  ): Promise<Outcome | Deliverable | null>
  /** Opens an order that nobody else shares. */
  open(request: OrderRequest, offer: Offer): Promise<Outcome>
}

export function createOneUrl(deps: {
  db: Db
  store: OrderStore
  secrets: Secrets
  clock: Clock
  health: NodeHealth
  quoting: Quoting
  prove: Settling['prove']
  refresh: Settling['refresh']
  answer: Delivering['answer']
  redeem: (order: OrderRow) => Promise<Outcome>
  logLost: (paymentHash: string, request: OrderRequest) => void
}): OneUrl {
  const { store, secrets, clock, health, quoting, prove, refresh, answer, redeem } = deps
  const isLost = createIsLost(deps)

  /** The order that a credential names, `lost`, or null if a new purchase is the answer to it. */
  async function named(
    request: OrderRequest,
    credential: CheckedCredential<unknown>,
  ): Promise<OrderRow | 'lost' | null> {
    const paymentHash = paymentHashIn(credential)
    if (paymentHash === null) return null
    const order = await store.findByPaymentHash(paymentHash)
    if (await isLost({ paymentHash, paid: order, request, credential })) {
      deps.logLost(paymentHash, request)
      return 'lost'
    }
    if (!order) return null
    return isOneUrl(order) && isSameRequest(order, request) ? order : null
  }

  async function glance(order: OrderRow): Promise<Outcome | Deliverable> {
    const current = await prove(order)
    const { payment_hash: paymentHash, settled_at: settledAt } = current
    if (current.state === 'settled' && !isOver(current, clock.now()) && paymentHash && settledAt) {
      return { kind: 'deliverable', paymentHash, settledAt }
    }
    // It could not be settled, or has ended since: there is nothing that this could deliver.
    if (current.state === 'pending') return { kind: 'checkout unavailable' }
    return answer(current, () => CREDENTIAL)
  }

  return {
    async answer(request, credential, { mayDeliver, admit }) {
      const order = await named(request, credential)
      if (order === null) return null
      if (order === 'lost') return { kind: 'order not found' }
      if (isSealed(order, clock.now())) {
        return isUnused(order, clock.now()) ? { kind: 'already delivered' } : null
      }
      const status = statusFor(order, credential)
      await admit({ orderId: order.order_id, isProven: status === 'verified' })
      if (status === 'verified') return mayDeliver ? redeem(order) : glance(order)
      if (status === 'mismatched') {
        // Anybody who has seen the preimage may have sent this, so the payment is proven and no more.
        await prove(order)
        return { kind: 'invalid credential', quote: null }
      }
      const current = await refresh(order)
      if (current.state === 'dead') return null
      const quote = current.state === 'pending' ? quoteOf(current) : null
      return { kind: 'invalid credential', quote }
    },

    async open(request, offer) {
      if (!health.isHealthy()) return { kind: 'checkout unavailable' }
      const name: OrderName = {
        route: NO_ROUTE,
        key: randomBytes(KEY_BYTES).toString('base64url'),
        clientAddress: '',
        client: null,
      }
      const [orderId] = orderIds(secrets, name)
      const opened = await quoting.open({
        ...{ orderId, name, request, offer, isCredentialOnly: true },
        requestHash: requestHash(request, offer.plan),
      })
      return opened.kind === 'opened' ? answer(opened.order, () => CREDENTIAL) : opened
    },
  }
}

/** An order of another kind may have been restored as one: its credential says which it was. */
const isOneUrl = ({ contested, restored_at }: OrderRow): boolean =>
  contested === CONTESTED.credentialOnly || restored_at !== null

/**
 * Whether a sealed order was delivered, and nothing shows that the answer arrived while its capability lives: the
 * buyer may still look for it, so a program must not buy a second one by itself. A use ends the repeats only
 * if it came before their age did; a client whose capability was used has it, and wants another one.
 */
const isUnused = ({ state, delivered_at, sealed_by, expires_at }: OrderRow, now: number): boolean =>
  state === 'settled' && delivered_at !== null && sealed_by !== 'use' && (expires_at ?? 0) > now
