/** Finds an order by any name that an operator or a buyer has for it. */
import { type Db, limitedTo, type Row, type Value } from '../db/db.ts'
import { isId } from '../lib/ids.ts'
import { type Product, SOLD_PRODUCTS } from '../lib/product-names.ts'
import { decodeInvoice, MAX_INVOICE_CHARS } from '../protocol/bolt11.ts'
import { FACT_COLUMNS, type OrderFacts } from './repair.ts'
import { findSale, type Sale } from './sales.ts'
import type { OrderRow, OrderState } from './store.ts'

/** A column of orders, and its value. */
export type OrderName = { by: 'payment_hash' | 'order_id' | 'public_id'; value: string }

/** What may be shown of an order to tell its story. */
export type FoundOrder = OrderFacts &
  Pick<OrderRow, 'contested' | 'is_dead_final' | 'sealed_by'> & {
    /** 1 while the service can repeat the answer or deliver it. */
    has_seed: 0 | 1
  }

/** What is left of an order whose row was deleted. */
export type Tombstone = { payment_hash: string; ended: 'used' | 'aged' | 'dead'; ended_at: number }

export type Found =
  /** `others`: the other orders that bought, extended or replaced the same capability, newest first. */
  | { kind: 'order'; order: FoundOrder; others: ListedOrder[] }
  | { kind: 'deleted'; tombstone: Tombstone; sale: Sale | null }
  | { kind: 'none' }

/** The ids of what orders buy. The address of a monitor's public status names no order. */
const CAPABILITY_IDS = Object.values(SOLD_PRODUCTS).map(({ ids }) => ids[0])

/**
 * Reads a payment hash, an invoice, the public id of a capability or the id of an order; null for any other text.
 * @throws InvalidInvoice for a text that begins like an invoice and is none.
 */
export function readOrderName(given: string): OrderName | null {
  const text = given.trim()
  if (/^[0-9a-f]{64}$/i.test(text)) return { by: 'payment_hash', value: text.toLowerCase() }
  if (isId('order', text)) return { by: 'order_id', value: text }
  if (CAPABILITY_IDS.some((kind) => isId(kind, text))) return { by: 'public_id', value: text }
  const invoice = text.replace(/^lightning:/i, '')
  if (invoice.length > MAX_INVOICE_CHARS || !/^ln(bc|tb|sb)/i.test(invoice)) return null
  return { by: 'payment_hash', value: decodeInvoice(invoice).paymentHash }
}

/** How many other orders of a capability are found with one of its orders. */
const MAX_OTHERS = 100

/** The order of this name, or what is left of it. */
export async function findByName(db: Db, name: OrderName): Promise<Found> {
  const { by, value } = name
  const order = await foundOrder(db, name)
  if (order) return { kind: 'order', order, others: await othersOf(db, order) }
  if (by !== 'payment_hash') return { kind: 'none' }
  const [tombstone] = await db.read<Tombstone & Row>(
    'select payment_hash, ended, ended_at from order_tombstone where payment_hash = $1',
    value,
  )
  if (!tombstone) return { kind: 'none' }
  return { kind: 'deleted', tombstone, sale: await findSale(db, value) }
}

/** A public id names the order that bought it; once that is deleted, the newest that has extended it. */
async function foundOrder(db: Db, { by, value }: OrderName): Promise<FoundOrder | null> {
  const facts = `select ${FACT_COLUMNS}, contested, is_dead_final, sealed_by,
    case when seed is null then 0 else 1 end as has_seed from purchase_order`
  const [order] = await db.read<FoundOrder & Row>(`${facts} where ${by} = $1`, value)
  if (order || by !== 'public_id') return order ?? null
  const [extension] = await db.read<FoundOrder & Row>(
    `${facts} where extends_id = $1 and state = 'settled' and public_id is null
      order by settled_at desc limit 1`,
    value,
  )
  return extension ?? null
}

function othersOf(
  db: Db,
  { order_id: orderId, public_id: publicId, extends_id: extendsId }: FoundOrder,
): Promise<ListedOrder[]> {
  // Null is in no list.
  return db.read<ListedOrder & Row>(
    `select ${LIST_COLUMNS} from purchase_order
     where (public_id in ($3, $4) or extends_id in ($3, $4)) and order_id <> $1
     order by created_at desc, order_id ${limitedTo(2)}`,
    orderId,
    MAX_OTHERS,
    publicId,
    extendsId,
  )
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
  | 'public_id'
  | 'extends_id'
>

const LIST_COLUMNS = `created_at, state, product, plan_id, amount_sats, payment_hash, public_id, extends_id`

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
    `select ${LIST_COLUMNS} from purchase_order
     where created_at >= $1${only('state', wanted.state)}${only('product', wanted.product)}
     order by created_at desc, order_id ${limitedTo(2)}`,
    ...values,
  )
}
