/** Orders as an operator sees them: found by any of their names, shown and listed. `story.ts` says what it means. */
import { type Db, limitedTo, type Value } from '../db/db.ts'
import { isId } from '../lib/ids.ts'
import { type Product, SOLD_PRODUCTS } from '../lib/product-names.ts'
import { copiedInvoice, decodeInvoice, MAX_INVOICE_CHARS } from '../protocol/bolt11.ts'
import { findRefund, findSale, type Refund, type Sale } from './sales.ts'
import type { OrderRow, OrderState } from './store.ts'
import { findTombstone, type Tombstone } from './tombstones.ts'

/** A column of orders, and its value. */
export type OrderRef = { by: 'payment_hash' | 'order_id' | 'public_id'; value: string }

/** An order, and its refund. */
export type ShownOrder = OrderRow & { refunded_at: number | null; refund_reason: string | null }

export type Shown =
  /** `others`: the other orders that bought, extended or replaced the same capability, newest first. */
  | { kind: 'order'; order: ShownOrder; others: OrderRow[] }
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
  const shown = `select o.*, refunded_at, reason as refund_reason
    from purchase_order o left join refund r on r.payment_hash = o.payment_hash`
  const [order] = await db.read<ShownOrder>(`${shown} where o.${by} = $1`, value)
  if (order || by !== 'public_id') return order ?? null
  const [extension] = await db.read<ShownOrder>(
    `${shown} where extends_id = $1 and state = 'settled' and public_id is null
      order by settled_at desc limit 1`,
    value,
  )
  return extension ?? null
}

function othersOf(
  db: Db,
  { order_id: orderId, public_id: publicId, extends_id: extendsId }: ShownOrder,
): Promise<OrderRow[]> {
  // Null is in no list.
  return db.read<OrderRow>(
    `select * from purchase_order
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
): Promise<OrderRow[]> {
  const values: Value[] = [wanted.since, wanted.limit]
  const only = (column: string, value: string | null): string =>
    value === null ? '' : ` and ${column} = $${values.push(value)}`
  return db.read<OrderRow>(
    `select * from purchase_order
     where created_at >= $1${only('state', wanted.state)}${only('product', wanted.product)}
     order by created_at desc, order_id ${limitedTo(2)}`,
    ...values,
  )
}
