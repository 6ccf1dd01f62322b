/** Orders in the store: each change is one conditional statement whose row count is the answer. */
import { hash } from 'node:crypto'
import type { Db, Kept, Row, Statement } from '../db/db.ts'
import type { Network } from '../lightning/lightning.ts'
import type { PlanId, Product } from './provisioning.ts'

export type OrderState =
  | 'opening'
  | 'pending'
  | 'settled'
  | 'dead'
  | 'paid_unfulfilled'
  | 'refunded'
export type SettledBy = 'stream' | 'lookup' | 'preimage'

export type OrderRow = {
  order_id: string
  secret_id: string
  key_hash: Uint8Array
  request_hash: Uint8Array
  product: Product
  plan_id: PlanId
  plan: string
  terms: string
  memo: string
  amount_sats: number
  client_network: string
  state: OrderState
  created_at: number
  claimed_at: number
  network: Network | null
  bolt11: string | null
  payment_hash: string | null
  quote_expires_at: number | null
  looked_up_at: number
  settled_at: number | null
  settled_by: SettledBy | null
  public_id: string | null
  seed: Uint8Array | null
  expires_at: number | null
  delivered_at: number | null
  sealed_at: number | null
} & Row

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
  | 'created_at'
>

/** Once a quote has been over for `endedMs`, its order is looked up every `everyMs`. */
export type Pauses = readonly [Pause, Pause, ...Pause[]]
type Pause = { endedMs: number; everyMs: number }

/**
 * Clocks of instances are less than this apart. A look-up that lies further ahead was noted by a
 * clock that has been put right since, and must not hold up the next one until that time comes.
 */
const CLOCKS_APART_MS = 60_000

/** What an order has of its invoice. */
export type Invoiced = Pick<OrderRow, 'network' | 'bolt11' | 'payment_hash' | 'quote_expires_at'>

/**
 * Opens an order with its invoice, or else claims the making of one. Refused when the order exists.
 */
export const insertOrder = (order: NewOrder, invoice?: Invoiced): Statement => ({
  text: `insert into purchase_order
    (order_id, key_hash, request_hash, product, plan_id, plan, terms, amount_sats, client_network,
     secret_id, memo, state, created_at, claimed_at, looked_up_at,
     network, bolt11, payment_hash, quote_expires_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $11, $12, $13, $10, $10, 0, $14, $15, $16, $17)
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
  ],
  expect: 1,
})

const stateWith = (invoice?: Invoiced): OrderState => (invoice ? 'pending' : 'opening')

/** The row as `insertOrder` makes it: the store need not send it back. */
export const insertedOrder = (order: NewOrder, invoice?: Invoiced): OrderRow => ({
  ...order,
  state: stateWith(invoice),
  claimed_at: order.created_at,
  network: invoice?.network ?? null,
  bolt11: invoice?.bolt11 ?? null,
  payment_hash: invoice?.payment_hash ?? null,
  quote_expires_at: invoice?.quote_expires_at ?? null,
  looked_up_at: 0,
  settled_at: null,
  settled_by: null,
  public_id: null,
  seed: null,
  expires_at: null,
  delivered_at: null,
  sealed_at: null,
})

/**
 * Makes the units that open orders of a client network take turns until they are committed. A unit
 * begins with it: units of a batch are sorted by the text that they begin with, so that all
 * instances take these locks in one order, and never wait for each other in a circle.
 */
export const takeTurn = (clientNetwork: string): Statement => ({
  text: `insert into opening_lock (bucket) values (cast($1 as integer))
    on conflict (bucket) do update set bucket = excluded.bucket`,
  values: [bucketOf(clientNetwork)],
})

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

/** One of 256, in three digits. */
const bucketOf = (clientNetwork: string): string =>
  String(Number.parseInt(hash('sha256', clientNetwork).slice(0, 2), 16)).padStart(3, '0')

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

/**
 * The one transition that provisions; it claims the delivery too where that has a time already. A
 * dead order may still turn out to be paid.
 */
export const settleOrder = (
  orderId: string,
  settled: Pick<
    OrderRow,
    'settled_at' | 'settled_by' | 'public_id' | 'seed' | 'expires_at' | 'delivered_at'
  >,
): Statement => ({
  text: `update purchase_order
    set state = 'settled', settled_at = $2, settled_by = $3, public_id = $4, seed = $5,
      expires_at = $6, delivered_at = $7
    where order_id = $1 and state in ('pending', 'dead')`,
  values: [
    orderId,
    settled.settled_at,
    settled.settled_by,
    settled.public_id,
    settled.seed,
    settled.expires_at,
    settled.delivered_at,
  ],
  expect: 1,
})

export const failSettlement = (orderId: string, now: number, by: SettledBy): Statement => ({
  text: `update purchase_order set state = 'paid_unfulfilled', settled_at = $2, settled_by = $3
    where order_id = $1 and state in ('pending', 'dead') returning *`,
  values: [orderId, now, by],
})

export const killOrder = (orderId: string): Statement => ({
  text: `update purchase_order set state = 'dead' where order_id = $1 and state = 'pending'`,
  values: [orderId],
  expect: 1,
})

/** Claims the one delivery, before the answer is written. */
export const deliverOrder = (orderId: string, now: number): Statement => ({
  text: `update purchase_order set delivered_at = $2
    where order_id = $1 and state = 'settled' and delivered_at is null and sealed_at is null
      and expires_at > $2 returning *`,
  values: [orderId, now],
})

/** Ends the replay of a delivered answer and wipes the seed. Goes into the unit of a token's use. */
export const sealDelivery = (publicId: string, now: number): Statement => ({
  text: `update purchase_order set seed = null, sealed_at = $2
    where public_id = $1 and sealed_at is null`,
  values: [publicId, now],
})

/** Claims the next look-up at the node: at most one in `everyMs`, whoever asks. */
export const claimLookup = (orderId: string, now: number, everyMs: number): Statement => ({
  text: `update purchase_order set looked_up_at = $2
    where order_id = $1 and state = 'pending'
      and (looked_up_at <= $2 - $3 or looked_up_at > $2 + $4) returning *`,
  values: [orderId, now, everyMs, CLOCKS_APART_MS],
})

/** The same for the sweep: refused where somebody has looked, or claimed it, since it was read. */
export const claimSweep = (orderId: string, lookedUpAt: number, now: number): Statement => ({
  text: `update purchase_order set looked_up_at = $3
    where order_id = $1 and state = 'pending' and looked_up_at = $2 returning *`,
  values: [orderId, lookedUpAt, now],
})

export const sealOverdue = (now: number, replayMs: number): Statement => ({
  text: `update purchase_order set seed = null, sealed_at = $1
    where seed is not null and (expires_at <= $1 or delivered_at <= $1 - $2)`,
  values: [now, replayMs],
})

/** Old orders, but never one that owes somebody something, or that was paid back. */
export const purgeOrders = (before: number): Statement => ({
  text: `delete from purchase_order where order_id in (
      select order_id from purchase_order
      where (state = 'settled' and expires_at < $1) or (state = 'dead' and quote_expires_at < $1)
      limit 500)`,
  values: [before],
})

export const resealOrder = (orderId: string, old: Uint8Array, seed: Uint8Array): Statement => ({
  text: `update purchase_order set seed = $3 where order_id = $1 and seed = $2`,
  values: [orderId, old, seed],
})

export function createOrderStore(db: Db) {
  const one = async (unit: Statement, kept?: Kept): Promise<OrderRow | null> => {
    const [rows] = await db.write([unit], kept)
    return (rows?.[0] as OrderRow | undefined) ?? null
  }
  return {
    one,

    /** The order of any of these ids: one per configured secret. */
    async find(orderIds: string[]): Promise<OrderRow | null> {
      const places = orderIds.map((_, i) => `$${i + 1}`).join(', ')
      const [order] = await db.read<OrderRow>(
        `select * from purchase_order where order_id in (${places})`,
        ...orderIds,
      )
      return order ?? null
    },

    async findByPaymentHash(paymentHash: string): Promise<OrderRow | null> {
      const [order] = await db.read<OrderRow>(
        'select * from purchase_order where payment_hash = $1',
        paymentHash,
      )
      return order ?? null
    },

    /** When the first of a client network's standing quotes ends, or null where it has none. */
    async firstEndOf(clientNetwork: string, now: number): Promise<number | null> {
      const [open] = await db.read<{ first: number | null }>(
        `select min(quote_expires_at) as first from purchase_order
         where client_network = $1 and state in ('opening', 'pending') and quote_expires_at > $2`,
        clientNetwork,
        now,
      )
      return open?.first ?? null
    },

    /** Pending orders that nobody looked up since `before`, the longest waiting first. */
    pending(before: number, now: number, limit: number): Promise<OrderRow[]> {
      return db.read<OrderRow>(
        `select * from purchase_order
         where state = 'pending' and (looked_up_at < $1 or looked_up_at > $2)
         order by looked_up_at limit $3`,
        before,
        now + CLOCKS_APART_MS,
        limit,
      )
    },

    /** Those of them whose pause is over, which grows with the time since the quote ended. */
    due(now: number, pauses: Pauses, limit: number): Promise<OrderRow[]> {
      const [first, ...later] = pauses
      const cases = later.map(
        ({ endedMs, everyMs }) => `when quote_expires_at + ${endedMs} <= $1 then ${everyMs}`,
      )
      const pause = `case ${cases.toReversed().join(' ')} else ${first.everyMs} end`
      return db.read<OrderRow>(
        `select * from purchase_order where state = 'pending'
           and (looked_up_at < $2 and looked_up_at + ${pause} < $1 or looked_up_at > $3)
         order by looked_up_at limit $4`,
        now,
        now - first.everyMs,
        now + CLOCKS_APART_MS,
        limit,
      )
    },

    /** Orders that are open or not collected yet, made under none of these secrets. */
    async foreign(secretIds: string[], now: number): Promise<number> {
      const places = secretIds.map((_, i) => `$${i + 2}`).join(', ')
      const [row] = await db.read<{ count: number }>(
        `select count(*) as count from purchase_order
         where secret_id not in (${places})
           and (state in ('opening', 'pending') or (seed is not null and expires_at > $1))`,
        now,
        ...secretIds,
      )
      return row?.count ?? 0
    },

    /** Opening orders whose claim is older than `before`. */
    abandoned(before: number, limit: number): Promise<OrderRow[]> {
      return db.read<OrderRow>(
        `select * from purchase_order where state = 'opening' and claimed_at < $1 limit $2`,
        before,
        limit,
      )
    },

    /** Orders whose seed is still kept, by id, for re-encryption. */
    withSeed(after: string, limit: number): Promise<OrderRow[]> {
      return db.read<OrderRow>(
        `select * from purchase_order where seed is not null and order_id > $1
         order by order_id limit $2`,
        after,
        limit,
      )
    },
  }
}

export type OrderStore = ReturnType<typeof createOrderStore>
