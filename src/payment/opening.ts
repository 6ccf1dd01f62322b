/** Opening an order: its row, the turn of its client network, and its one invoice. */
import { hash } from 'node:crypto'
import type { Statement } from '../db/db.ts'
import { CONTESTED, type OrderRow, type OrderState } from './store.ts'

export type NewOrder = Pick<
  OrderRow,
  | 'order_id'
  | 'secret_id'
  | 'key_hash'
  | 'request_hash'
  | 'product'
  | 'plan_id'
  | 'plan'
  | 'terms'
  | 'memo'
  | 'amount_sats'
  | 'client_network'
  | 'opened_by'
  | 'created_at'
>

/** What an order has of its invoice. */
export type Invoiced = Pick<OrderRow, 'network' | 'bolt11' | 'payment_hash' | 'quote_expires_at'>

/**
 * Opens an order with its invoice, or else claims the making of one. Refused when the order exists.
 */
export const insertOrder = (order: NewOrder, invoice?: Invoiced): Statement => ({
  text: `insert into purchase_order
    (order_id, key_hash, request_hash, product, plan_id, plan, terms, amount_sats, client_network,
     secret_id, memo, state, created_at, claimed_at, looked_up_at,
     network, bolt11, payment_hash, quote_expires_at, opened_by)
    select $1, $2, $3, $4, $5, $6, $7, cast($8 as bigint), $9, $11, $12, $13, cast($10 as bigint),
      cast($10 as bigint), 0, $14, $15, $16, cast($17 as bigint), $18
    where not exists (select 1 from order_alias where alias_id = $1)
    on conflict (order_id) do nothing`,
  values: [
    order.order_id,
    order.key_hash,
    order.request_hash,
    order.product,
    order.plan_id,
    order.plan,
    order.terms,
    order.amount_sats,
    order.client_network,
    order.created_at,
    order.secret_id,
    order.memo,
    stateWith(invoice),
    invoice?.network ?? null,
    invoice?.bolt11 ?? null,
    invoice?.payment_hash ?? null,
    invoice?.quote_expires_at ?? null,
    order.opened_by,
  ],
  expect: 1,
})

const stateWith = (invoice?: Invoiced): OrderState => (invoice ? 'pending' : 'opening')

/** The row as `insertOrder` makes it: the store need not send it back. */
export const insertedOrder = (order: NewOrder, invoice?: Invoiced): OrderRow => ({
  ...order,
  contested: CONTESTED.no,
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
})

/**
 * Makes the units that open orders of a client network take turns until they are committed. A unit
 * begins with it, and has `lockKeyOfTurn` as its lock key.
 */
export const takeTurn = (clientNetwork: string): Statement => ({
  text: `insert into opening_lock (bucket) values (cast($1 as integer))
    on conflict (bucket) do update set bucket = excluded.bucket`,
  values: [bucketOf(clientNetwork)],
})

export const lockKeyOfTurn = (clientNetwork: string): string => `opening ${bucketOf(clientNetwork)}`

/**
 * Refused when the client network has more than `most` unpaid orders, the one that this unit has
 * just inserted among them. Counting is exact after `takeTurn` alone: without it two units see none
 * of each other's orders. There is nothing to give back: the orders are the count.
 */
export const limitOpen = (clientNetwork: string, now: number, most: number): Statement => ({
  text: `update opening_lock set bucket = bucket where bucket = cast($1 as integer) and $4 >= (
      select count(*) from purchase_order
      where client_network = $2 and state in ('opening', 'pending')
        and (quote_expires_at is null or quote_expires_at > $3))`,
  values: [bucketOf(clientNetwork), clientNetwork, now, most],
  expect: 1,
})

/** One of 256. */
const bucketOf = (clientNetwork: string): number =>
  Number.parseInt(hash('sha256', clientNetwork).slice(0, 2), 16)

/** Takes over an opening order whose claim has run out. */
export const reclaimOrder = (orderId: string, claimedAt: number, now: number): Statement => ({
  text: `update purchase_order set claimed_at = $3
    where order_id = $1 and state = 'opening' and claimed_at = $2 returning *`,
  values: [orderId, claimedAt, now],
})

/** Gives the order its invoice, if the claim is still ours: never a second one. */
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

/** Forgets an order that never had an invoice, so that the buyer may simply try again. */
export const dropOpening = (orderId: string, claimedAt: number): Statement => ({
  text: `delete from purchase_order where order_id = $1 and state = 'opening' and claimed_at = $2`,
  values: [orderId, claimedAt],
  expect: 1,
})
