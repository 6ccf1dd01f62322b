/**
 * What an operator does with orders, beside the running service: lists and shows them, delivers what is owed, and
 * notes what was paid back. Each change is one conditional unit. `restoring.ts` has the orders that the store has lost.
 */
import { attempt, type Db, limitedTo, type Row, type Statement, type Value } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import { isId } from '../lib/ids.ts'
import { type Product, SOLD_PRODUCTS } from '../lib/product-names.ts'
import { copiedInvoice, decodeInvoice, MAX_INVOICE_CHARS } from '../protocol/bolt11.ts'
import { fingerprints, openSeed, type Secrets } from '../secrets/secrets.ts'
import { settledPayment } from './orders.ts'
import type { Products } from './provisioning.ts'
import { findRefund, findSale, type Refund, recordRefund, type Sale } from './sales.ts'
import { type SettledFields, settleSale } from './settlement.ts'
import { createOrderStore, type OrderRow, type OrderState } from './store.ts'
import { findTombstone, type Tombstone } from './tombstones.ts'

// Showing

/** A column of orders, and its value. */
export type OrderRef = { by: 'payment_hash' | 'order_id' | 'public_id'; value: string }

/** What may be shown of an order: no key, no seed, no hash of either, and no network of the buyer. */
export type ShownOrder = Pick<
  OrderRow,
  | 'order_id'
  | 'product'
  | 'plan_id'
  | 'amount_sats'
  | 'network'
  | 'payment_hash'
  | 'state'
  | 'contested'
  | 'created_at'
  | 'quote_expires_at'
  | 'settled_at'
  | 'settled_by'
  | 'public_id'
  | 'expires_at'
  | 'delivered_at'
  | 'sealed_at'
  | 'sealed_by'
  | 'restored_at'
  | 'unfulfilled_at'
  | 'extends_id'
> & {
  delivered_by: 'operator' | null
  /** 1 while the service can repeat the answer or deliver it. */
  has_seed: 0 | 1
  refunded_at: number | null
  refund_reason: string | null
}

/** An order in a list. */
export type ListedOrder = Pick<
  OrderRow,
  | 'created_at'
  | 'state'
  | 'product'
  | 'plan_id'
  | 'amount_sats'
  | 'payment_hash'
  | 'order_id'
  | 'public_id'
  | 'extends_id'
>

export type Shown =
  /** `others`: the other orders that bought, extended or replaced the same capability, newest first. */
  | { kind: 'order'; order: ShownOrder; others: ListedOrder[] }
  | { kind: 'deleted'; tombstone: Tombstone; sale: Sale | null; refund: Refund | null }
  | { kind: 'none' }

/** The ids of what orders buy. The address of a monitor's public status names no order. */
const CAPABILITY_IDS = Object.values(SOLD_PRODUCTS).map(({ ids }) => ids[0])

/**
 * Reads a payment hash, an invoice, the public id of a capability or the id of an order; null for any other text.
 * @throws InvalidInvoice for a text that begins like an invoice and is none.
 */
export function readOrderRef(given: string): OrderRef | null {
  const text = given.trim()
  if (/^[0-9a-f]{64}$/i.test(text)) return { by: 'payment_hash', value: text.toLowerCase() }
  if (isId('order', text)) return { by: 'order_id', value: text }
  if (CAPABILITY_IDS.some((kind) => isId(kind, text))) return { by: 'public_id', value: text }
  const invoice = copiedInvoice(text)
  if (invoice.length > MAX_INVOICE_CHARS || !/^ln(bc|tb|sb)/.test(invoice)) return null
  return { by: 'payment_hash', value: decodeInvoice(invoice).paymentHash }
}

/** How many other orders of a capability are shown with one of its orders. */
const MAX_OTHERS = 100

/** The order of this name, or what is left of it. */
export async function showOrder(db: Db, ref: OrderRef): Promise<Shown> {
  const order = await shownOrder(db, ref)
  if (order) return { kind: 'order', order, others: await othersOf(db, order) }
  if (ref.by !== 'payment_hash') return { kind: 'none' }
  const tombstone = await findTombstone(db, ref.value)
  if (!tombstone) return { kind: 'none' }
  const [sale, refund] = await Promise.all([findSale(db, ref.value), findRefund(db, ref.value)])
  return { kind: 'deleted', tombstone, sale, refund }
}

/** A public id names the order that bought it; once that is deleted, the newest that has extended it. */
async function shownOrder(db: Db, { by, value }: OrderRef): Promise<ShownOrder | null> {
  const shown = `select order_id, product, plan_id, o.amount_sats, network, o.payment_hash, state, contested,
      created_at, quote_expires_at, settled_at, settled_by, public_id, expires_at, delivered_at, delivered_by,
      sealed_at, sealed_by, restored_at, unfulfilled_at, extends_id,
      case when seed is null then 0 else 1 end as has_seed, refunded_at, reason as refund_reason
    from purchase_order o left join refund r on r.payment_hash = o.payment_hash`
  const [order] = await db.read<ShownOrder & Row>(`${shown} where o.${by} = $1`, value)
  if (order || by !== 'public_id') return order ?? null
  const [extension] = await db.read<ShownOrder & Row>(
    `${shown} where extends_id = $1 and state = 'settled' and public_id is null
      order by settled_at desc limit 1`,
    value,
  )
  return extension ?? null
}

const LISTED = `created_at, state, product, plan_id, amount_sats, payment_hash, order_id, public_id, extends_id`

function othersOf(
  db: Db,
  { order_id: orderId, public_id: publicId, extends_id: extendsId }: ShownOrder,
): Promise<ListedOrder[]> {
  // Null is in no list.
  return db.read<ListedOrder & Row>(
    `select ${LISTED} from purchase_order
     where (public_id in ($3, $4) or extends_id in ($3, $4)) and order_id <> $1
     order by created_at desc, order_id ${limitedTo(2)}`,
    orderId,
    MAX_OTHERS,
    publicId,
    extendsId,
  )
}

/** The newest orders first. */
export function listOrders(
  db: Db,
  wanted: {
    state: OrderState | null
    product: Product | null
    /** Unix milliseconds. */
    since: number
    limit: number
  },
): Promise<ListedOrder[]> {
  const values: Value[] = [wanted.since, wanted.limit]
  const only = (column: string, value: string | null): string =>
    value === null ? '' : ` and ${column} = $${values.push(value)}`
  return db.read<ListedOrder & Row>(
    `select ${LISTED} from purchase_order
     where created_at >= $1${only('state', wanted.state)}${only('product', wanted.product)}
     order by created_at desc, order_id ${limitedTo(2)}`,
    ...values,
  )
}

// Delivering

export type DeliveryDeps = { db: Db; secrets: Secrets; clock: Clock; products: Products }

/** Why nothing was delivered. */
type Undelivered =
  | { kind: 'order not found' }
  | { kind: 'not paid'; state: OrderState }
  /** The configured secrets do not include the one that the order was made under. */
  | { kind: 'other secret' }
  /** It failed again; nothing was changed. */
  | { kind: 'refused'; reason: string }
  /** It was delivered, or is sealed: it is never delivered twice. */
  | { kind: 'already delivered'; at: number | null }
  /** The capability has expired; nobody collected it. */
  | { kind: 'over'; at: number }

export type Provisioned =
  /** `publicId`: what was sold, or extended. The buyer's next poll delivers it. */
  | { kind: 'provisioned'; publicId: string; isExtended: boolean; expiresAt: number }
  /** There was nothing to do: it is the buyer's turn. */
  | { kind: 'waits for its buyer' }
  | Undelivered

export type HandedOut =
  /**
   * `body` is the answer that the buyer would have got. There is no other copy of it. `extendedId` is what the order
   * has extended: then it has no token.
   */
  { kind: 'handed out'; body: string; extendedId: string | null } | Undelivered

/** Provisions an order that is paid and unfulfilled. */
export async function deliverOrder(deps: DeliveryDeps, orderId: string): Promise<Provisioned> {
  const { db, secrets, clock } = deps
  const store = createOrderStore(db)
  const order = await store.find(orderId)
  const reason = whyUndelivered(order, clock.now())
  if (!order || reason) return reason ?? { kind: 'order not found' }
  if (order.state === 'settled') return { kind: 'waits for its buyer' }
  if (!fingerprints(secrets).includes(order.secret_id)) return { kind: 'other secret' }
  const done = await settleSale(deps, order, {
    // The life of the capability begins now: the buyer could not use it before.
    now: clock.now(),
    transition: (fields) => [settleUnfulfilled(orderId, fields)],
  })
  switch (done.kind) {
    case 'settled': {
      const { public_id, expires_at: expiresAt } = done.fields
      const publicId = public_id ?? order.extends_id ?? ''
      return { kind: 'provisioned', publicId, isExtended: public_id === null, expiresAt }
    }
    case 'failed':
      return { kind: 'refused', reason: messageOf(done.fault) }
    case 'not applied': {
      // Somebody else was faster.
      const current = await store.find(orderId)
      return whyUndelivered(current, clock.now()) ?? { kind: 'waits for its buyer' }
    }
  }
}

/**
 * Hands a paid order out to the operator, for a buyer who cannot prove the payment. It happens once, like any
 * delivery, and seals the order. An order that is unfulfilled is provisioned first.
 */
export async function handOutOrder(deps: DeliveryDeps, orderId: string): Promise<HandedOut> {
  const { db, secrets, clock, products } = deps
  const store = createOrderStore(db)
  const provisioned = await deliverOrder(deps, orderId)
  if (provisioned.kind !== 'provisioned' && provisioned.kind !== 'waits for its buyer') {
    return provisioned
  }
  const order = await store.find(orderId)
  const now = clock.now()
  if (!order?.seed) return whyUndelivered(order, now) ?? { kind: 'already delivered', at: null }
  const opened = openSeed(secrets, order.seed, orderId)
  if (!opened) return { kind: 'other secret' }
  const body = settledPayment(order, opened.plain, products)
  const done = await attempt(
    db.write({ lockKey: orderId, statements: { order: handOut(orderId, now) } }),
  )
  const extendedId = order.public_id === null ? order.extends_id : null
  if ('rows' in done) return { kind: 'handed out', body, extendedId }
  const current = await store.find(orderId)
  return whyUndelivered(current, now) ?? { kind: 'already delivered', at: null }
}

/** Null for an order that is paid and has something to deliver. */
function whyUndelivered(order: OrderRow | null, now: number): Undelivered | null {
  if (!order) return { kind: 'order not found' }
  if (order.state === 'paid_unfulfilled') return null
  if (order.state !== 'settled') return { kind: 'not paid', state: order.state }
  if (order.delivered_at !== null) return { kind: 'already delivered', at: order.delivered_at }
  if (order.expires_at !== null && order.expires_at <= now) {
    return { kind: 'over', at: order.expires_at }
  }
  return order.sealed_at === null ? null : { kind: 'already delivered', at: order.sealed_at }
}

const settleUnfulfilled = (orderId: string, settled: SettledFields): Statement => ({
  text: `update purchase_order
    set state = 'settled', settled_at = $2, public_id = $3, seed = $4, expires_at = $5,
      unfulfilled_at = settled_at
    where order_id = $1 and state = 'paid_unfulfilled' returning *`,
  values: [orderId, settled.settled_at, settled.public_id, settled.seed, settled.expires_at],
  expect: 1,
})

/** Whether contested or not: the operator judges who the buyer is. */
const handOut = (orderId: string, now: number): Statement => ({
  text: `update purchase_order
    set delivered_at = $2, delivered_by = 'operator', sealed_at = $2, seed = null
    where order_id = $1 and state = 'settled' and delivered_at is null and sealed_at is null
      and expires_at > $2`,
  values: [orderId, now],
  expect: 1,
})

// Refunding

export type Refunding =
  /** `publicId` still works, if it was sold and has not ended. */
  | { kind: 'refunded'; amountSats: number; publicId: string | null }
  | { kind: 'refunded before'; at: number | null }
  | { kind: 'not paid'; state: OrderState }
  /** Somebody else has just provisioned it: the operator should look again. */
  | { kind: 'changed'; state: OrderState }
  /** Neither an order nor a sale has this name. */
  | { kind: 'order not found' }

/**
 * Notes that the operator has paid back an order that was paid, delivered or not. It is never delivered from then on.
 * What was sold works to its end: that is for a takedown. Of a deleted order the sale is enough.
 */
export async function refundOrder(
  { db, clock, products }: { db: Db; clock: Clock; products: Products },
  ref: OrderRef,
  reason: string,
): Promise<Refunding> {
  const now = clock.now()
  const order = await shownOrder(db, ref)
  if (!order) return refundSale({ db, now }, ref, reason)
  const { order_id: orderId, state, payment_hash: paymentHash, amount_sats: amountSats } = order
  if (state === 'refunded') return { kind: 'refunded before', at: order.refunded_at }
  const isUnfulfilled = state === 'paid_unfulfilled'
  if ((!isUnfulfilled && state !== 'settled') || paymentHash === null) {
    return { kind: 'not paid', state }
  }
  const done = await attempt(
    db.write({
      lockKey: orderId,
      statements: {
        order: endRefunded(orderId, state, now),
        refund: recordRefund({ paymentHash, amountSats, reason, refundedAt: now }),
        // What was sold has nothing reserved any more.
        release: isUnfulfilled ? (products[order.product]?.release?.(orderId) ?? []) : [],
      },
    }),
  )
  if ('rows' in done) return { kind: 'refunded', amountSats, publicId: order.public_id }
  const current = await shownOrder(db, ref)
  return current === null || current.state === 'refunded' || current.state === state
    ? { kind: 'refunded before', at: current?.refunded_at ?? null }
    : { kind: 'changed', state: current.state }
}

async function refundSale(
  { db, now }: { db: Db; now: number },
  { by, value: paymentHash }: OrderRef,
  reason: string,
): Promise<Refunding> {
  const sale = by === 'payment_hash' ? await findSale(db, paymentHash) : null
  if (!sale) return { kind: 'order not found' }
  const { amount_sats: amountSats } = sale
  const refund = recordRefund({ paymentHash, amountSats, reason, refundedAt: now })
  const done = await attempt(db.write({ lockKey: paymentHash, statements: { refund } }))
  if ('rows' in done) return { kind: 'refunded', amountSats, publicId: null }
  return { kind: 'refunded before', at: (await findRefund(db, paymentHash))?.refunded_at ?? null }
}

const endRefunded = (orderId: string, state: OrderState, now: number): Statement => ({
  text: `update purchase_order
    set state = 'refunded', seed = null, sealed_at = coalesce(sealed_at, $2)
    where order_id = $1 and state = $3`,
  values: [orderId, now, state],
  expect: 1,
})
