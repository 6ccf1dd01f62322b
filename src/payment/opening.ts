/** Opening an order: its row, the turn of its client network, and its one invoice. */
import { hash } from 'node:crypto'
import type { Statement } from '../db/db.ts'
import type { OrderRow, OrderState } from './store.ts'

export type NewOrder = Pick<
  OrderRow,
  | 'order_id'
  | 'secret_id'
  | 'request_hash'
  | 'product'
  | 'plan_id'
  | 'plan'
  | 'terms'
  | 'memo'
  | 'amount_sats'
  | 'client_network'
  | 'opened_by'
  | 'contested'
  | 'created_at'
  | 'extends_id'
>

/** The columns of an order that hold its invoice. */
export type Invoiced = Pick<OrderRow, 'network' | 'bolt11' | 'payment_hash' | 'quote_expires_at'>

/**
 * Opens an order with its invoice. Without one, it claims the right to make it. Refused if the order exists.
 */
export const insertOrder = (order: NewOrder, invoice?: Invoiced): Statement => ({
  text: `insert into purchase_order
    (order_id, request_hash, product, plan_id, plan, terms, amount_sats, client_network,
     secret_id, memo, state, created_at, claimed_at, looked_up_at,
     network, bolt11, payment_hash, quote_expires_at, opened_by, contested, extends_id)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, 0, $13, $14, $15, $16, $17, $18, $19)
    on conflict (order_id) do nothing`,
  values: [
    order.order_id,
    order.request_hash,
    order.product,
    order.plan_id,
    order.plan,
    order.terms,
    order.amount_sats,
    order.client_network,
    order.secret_id,
    order.memo,
    stateWith(invoice),
    order.created_at,
    invoice?.network ?? null,
    invoice?.bolt11 ?? null,
    invoice?.payment_hash ?? null,
    invoice?.quote_expires_at ?? null,
    order.opened_by,
    order.contested,
    order.extends_id,
  ],
  expect: 1,
})

const stateWith = (invoice?: Invoiced): OrderState => (invoice ? 'pending' : 'opening')

/** The row that `insertOrder` inserts, so that the store need not send it back. */
export const insertedOrder = (order: NewOrder, invoice?: Invoiced): OrderRow => ({
  ...order,
  state: stateWith(invoice),
  claimed_at: order.created_at,
  network: invoice?.network ?? null,
  bolt11: invoice?.bolt11 ?? null,
  payment_hash: invoice?.payment_hash ?? null,
  quote_expires_at: invoice?.quote_expires_at ?? null,
  looked_up_at: 0,
  is_dead_final: 0,
  settled_at: null,
  settled_by: null,
  public_id: null,
  seed: null,
  expires_at: null,
  delivered_at: null,
  sealed_at: null,
  sealed_by: null,
  restored_at: null,
  unfulfilled_at: null,
})

/**
 * Locks the opening of orders for a client network until the unit commits. It is the first statement of its
 * unit, and the unit's lock key is `lockKeyOfTurn`.
 */
export const takeTurn = (clientNetwork: string): Statement => ({
  text: `insert into opening_lock (bucket) values (cast($1 as integer))
    on conflict (bucket) do update set bucket = excluded.bucket`,
  values: [bucketOf(clientNetwork)],
})

export const lockKeyOfTurn = (clientNetwork: string): string => `opening ${bucketOf(clientNetwork)}`

/**
 * Refused if the client network has more than `max` unpaid orders, including the one that this unit has just
 * inserted. The count is exact only after `takeTurn`: without it, two units do not see each other's orders.
 * It counts the orders themselves, so there is no counter to reset.
 */
export const limitOpen = (clientNetwork: string, now: number, max: number): Statement => ({
  text: `update opening_lock set bucket = bucket where bucket = cast($1 as integer) and $4 >= (
      select count(*) from purchase_order
      where client_network = $2 and state in ('opening', 'pending')
        and (quote_expires_at is null or quote_expires_at > $3))`,
  values: [bucketOf(clientNetwork), clientNetwork, now, max],
  expect: 1,
})

/** A number below 256. */
const bucketOf = (clientNetwork: string): number =>
  Number.parseInt(hash('sha256', clientNetwork).slice(0, 2), 16)

/** Takes over an opening order whose claim has run out. */
export const reclaimOrder = (orderId: string, claimedAt: number, now: number): Statement => ({
  text: `update purchase_order set claimed_at = $3
    where order_id = $1 and state = 'opening' and claimed_at = $2 returning *`,
  values: [orderId, claimedAt, now],
})

/** Stores the order's invoice if the caller still has the claim, so that an order never gets two. */
export const invoiceOrder = (orderId: string, claimedAt: number, invoice: Invoiced): Statement => ({
  text: `update purchase_order
    set state = 'pending', network = $3, bolt11 = $4, payment_hash = $5, quote_expires_at = $6
    where order_id = $1 and state = 'opening' and claimed_at = $2`,
  values: [
    orderId,
    claimedAt,
    invoice.network,
    invoice.bolt11,
    invoice.payment_hash,
    invoice.quote_expires_at,
  ],
  expect: 1,
})

/** Deletes an order that never had an invoice, so that the buyer can try again. */
export const dropOpening = (orderId: string, claimedAt: number): Statement => ({
  text: `delete from purchase_order where order_id = $1 and state = 'opening' and claimed_at = $2`,
  values: [orderId, claimedAt],
  expect: 1,
})

/** Follows `dropOpening`: the key is free for another order then. */
export const dropName = (orderId: string): Statement => ({
  text: 'delete from order_name where name = $1',
  values: [orderId],
})
