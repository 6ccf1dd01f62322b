/** An order as its buyer sees it, and what its row means. */
import { hash } from 'node:crypto'
import type { Statement } from '../db/db.ts'
import { rfc3339 } from '../lib/clock.ts'
import { type Json, jcs } from '../lib/jcs.ts'
import type { PlanId, Product } from '../lib/product-names.ts'
import type { Grant, PlanTerms } from './provisioning.ts'
import type { Quote } from './quote.ts'
import type { OrderRow } from './store.ts'

/** The service repeats the answer to its buyer for this long after the first delivery. */
export const REPLAY_MS = 24 * 60 * 60 * 1000

/**
 * A repeat is the same request if all of this is equal. Terms that depend on the plan are a function of
 * it, so that a repeat is compared under the plan that its order keeps.
 */
export type OrderRequest = {
  product: Product
  planId: PlanId
  terms: Json | ((plan: Json) => Json)
  bodySha256: string
  /** The capability to extend. Left out: a new one is bought. */
  extendsId?: string
}

/** The terms of a new order. It keeps `plan` as it is now. */
export type Offer = {
  plan: PlanTerms & Record<string, Json>
  clientNetwork: string
  /** How many unpaid orders the client network may have, this one included. Left out: any number. */
  maxOpen?: number
  /**
   * The statements that reserve the resources for settling. They join the unit that inserts the order. If
   * one is refused, there is no capacity, and neither an order nor an invoice is made.
   */
  reserve?: (orderId: string) => Statement[]
}

/** `retryAfterSeconds` is null if nobody knows when there will be capacity. */
export type TooMany = { kind: 'rate limited'; retryAfterSeconds: number | null }

export type Outcome =
  | { kind: 'pending'; quote: Quote }
  /** The credential does not pay this order. `quote` is null once the order cannot be paid any more. */
  | { kind: 'invalid credential'; quote: Quote | null }
  /** It is paid, and the client has not proven to be the one who paid. */
  | { kind: 'proof of payment required' }
  /** `body` is the JSON of SettledPayment, or of an extension: the same bytes each time. */
  | { kind: 'delivered'; body: string; paymentHash: string; settledAt: number }
  | { kind: 'already delivered' }
  | { kind: 'order expired' }
  /** It could not be fulfilled, and its buyer was paid back. */
  | { kind: 'order refunded' }
  | { kind: 'order not found' }
  | { kind: 'idempotency key reused with a different request' }
  /** No order was opened: the client network has too many unpaid ones, or the product has no capacity left. */
  | TooMany
  /** The node cannot make an invoice now, or the order is paid and could not be fulfilled yet. */
  | { kind: 'checkout unavailable' }

/** It is paid and can be delivered, but this request may not deliver. */
export type Deliverable = { kind: 'deliverable'; paymentHash: string; settledAt: number }

export const quoteOf = (order: OrderRow): Quote => ({
  orderId: order.order_id,
  product: order.product,
  planId: order.plan_id,
  amountSats: order.amount_sats,
  bolt11: order.bolt11,
  paymentHash: order.payment_hash,
  expiresAt: order.quote_expires_at,
  network: order.network,
  memo: memoOf({ product: order.product, planId: order.plan_id, extendsId: order.extends_id }),
  durationSeconds: planOf(order).durationSeconds,
  ...(order.contested === 0 ? {} : { proofRequired: true as const }),
})

/** The text of an invoice: what is bought, and nothing of who buys it. */
export const memoOf = (sold: {
  product: Product
  planId: PlanId
  extendsId?: string | null
}): string =>
  `Mayfly ${sold.product.toUpperCase()} ${sold.planId}${sold.extendsId ? ' extension' : ''}`

/** The grant of a settled order, with its delivery seed. */
export function grantOf(
  order: Pick<
    OrderRow,
    'order_id' | 'public_id' | 'plan_id' | 'plan' | 'terms' | 'settled_at' | 'expires_at'
  >,
  seed: Uint8Array,
): Grant {
  const { public_id, settled_at, expires_at } = order
  if (public_id === null || settled_at === null || expires_at === null) {
    throw new Error('an order that is not settled grants nothing')
  }
  return {
    orderId: order.order_id,
    publicId: public_id,
    planId: order.plan_id,
    plan: planOf(order),
    terms: JSON.parse(order.terms) as Json,
    seed,
    settledAt: settled_at,
    expiresAt: expires_at,
  }
}

/** The end of what a settled order has sold, RFC 3339. */
export function endOf({ expires_at }: Pick<OrderRow, 'expires_at'>): string {
  if (expires_at === null) throw new Error('an order that is not settled has no end')
  return rfc3339(expires_at)
}

/** The plan as it was when the order was opened. */
export function planOf(order: Pick<OrderRow, 'plan'>): PlanTerms & Record<string, Json> {
  return JSON.parse(order.plan) as PlanTerms & Record<string, Json>
}

/** The latest time that a JavaScript Date can have, in unix milliseconds (ECMA-262, TimeClip). */
const LAST_DATE_MS = 8_640_000_000_000_000

/**
 * The end of a capability whose life under this plan begins now, in unix milliseconds.
 * @throws Error for a plan without a duration, or with one beyond the last date.
 */
export function endOfLife(plan: PlanTerms, now: number): number {
  const end = now + plan.durationSeconds * 1000
  if (Number.isSafeInteger(end) && end <= LAST_DATE_MS) return end
  throw new Error('the plan of this order does not say how long it lasts')
}

/** Whether the order delivers nothing any more: it is sealed, or past its replay time, or past its life. */
export function isOver(order: OrderRow, now: number): boolean {
  if (order.sealed_at !== null || order.seed === null) return true
  if (order.expires_at !== null && order.expires_at <= now) return true
  return order.delivered_at !== null && order.delivered_at + REPLAY_MS <= now
}

/** Whether the order has extended a capability: it hands out no token. */
export const isExtended = ({
  state,
  extends_id,
  public_id,
}: Pick<OrderRow, 'state' | 'extends_id' | 'public_id'>): boolean =>
  state === 'settled' && extends_id !== null && public_id === null

/** Whether the order was to extend a capability that had ended by the time of the payment, and sold a new one. */
export const isReplacement = ({
  extends_id,
  public_id,
}: Pick<OrderRow, 'extends_id' | 'public_id'>): boolean => extends_id !== null && public_id !== null

/** Whether the payment of the order buys nothing more: used, expired or paid back. */
export function isSealed(order: OrderRow, now: number): boolean {
  return order.state === 'refunded' || (order.state === 'settled' && isOver(order, now))
}

/**
 * Whether this is the request that the order was opened with. An order whose plan has become unreadable
 * matches every request: it cannot be delivered, and its buyer has to learn that it is unfulfilled.
 */
export function isSameRequest(order: OrderRow, request: OrderRequest): boolean {
  // First, because the terms of one product cannot be read under the plan of another.
  if (order.product !== request.product) return false
  // A restored order has lost its body, and the operator chose its plan; its credential binds the request.
  if (order.restored_at !== null) return true
  if (order.plan_id !== request.planId) return false
  let hashed: Buffer
  try {
    hashed = requestHash(request, planOf(order))
  } catch {
    return true
  }
  return hashed.equals(order.request_hash)
}

/** The hash of its request that an order stores, to recognise a different request under the same key. */
export function requestHash(request: OrderRequest, plan: Json): Buffer {
  const { product, planId, bodySha256, extendsId } = request
  const terms = termsUnder(plan, request)
  const facts = { product, planId, terms, bodySha256 }
  // As text first: that is faster than a Hash object, or bytes.
  const text = hash(
    'sha256',
    jcs(extendsId === undefined ? facts : { ...facts, extendsId }),
    'binary',
  )
  return Buffer.from(text, 'latin1')
}

/** The terms of a request under a plan. */
export function termsUnder(plan: Json, { terms }: OrderRequest): Json {
  return typeof terms === 'function' ? terms(plan) : terms
}

/** How the log names an order. */
export const namedIn = (
  order: Pick<OrderRow, 'payment_hash' | 'product'>,
): { paymentHash: string; product: string } => ({
  paymentHash: order.payment_hash,
  product: order.product,
})
