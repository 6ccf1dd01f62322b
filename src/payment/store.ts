/** Orders in the store: each change is one conditional statement whose row count is the answer. */
import {
  attempt,
  type Db,
  type Durability,
  limitedTo,
  places,
  type Row,
  type Statement,
  type Unit,
  ValueRefused,
} from '../db/db.ts'
import type { PlanId, Product } from '../lib/product-names.ts'
import type { Network } from '../lightning/lightning.ts'

export type OrderState = 'pending' | 'settled' | 'dead' | 'paid_unfulfilled' | 'refunded'
export type SettledBy = 'stream' | 'lookup' | 'preimage'

export type OrderRow = {
  order_id: string
  secret_id: string
  request_hash: Uint8Array
  product: Product
  plan_id: PlanId
  plan: string
  terms: string
  amount_sats: number
  client_network: string
  /** The client who opened it: see `clientMark`. */
  opened_by: string
  /**
   * 1 once its quote was shown to another client, for good: it is delivered to proof alone. A purchase of one URL is
   * contested from its birth, because its buyer has no key.
   */
  contested: 0 | 1
  state: OrderState
  created_at: number
  network: Network
  bolt11: string
  payment_hash: string
  quote_expires_at: number
  looked_up_at: number
  /** 1 if the node has confirmed that the invoice can never be settled, 0 if that is a guess. */
  is_dead_final: number
  settled_at: number | null
  settled_by: SettledBy | null
  public_id: string | null
  seed: Uint8Array | null
  expires_at: number | null
  delivered_at: number | null
  /** Null: the service. */
  delivered_by: 'operator' | null
  sealed_at: number | null
  sealed_by: 'use' | 'age' | null
  /** The capability that it extends, or null: see `isExtended`. */
  extends_id: string | null
  /** When an operator restored an order that the store had lost: its key and body are unknown. */
  restored_at: number | null
  /** When the payment was seen of an order that could be provisioned only later, at settled_at. */
  unfulfilled_at: number | null
} & Row

/** What is the same in every new order. */
export const NEW_ORDER = {
  state: 'pending',
  extends_id: null,
  looked_up_at: 0,
  is_dead_final: 0,
  settled_at: null,
  settled_by: null,
  public_id: null,
  seed: null,
  expires_at: null,
  delivered_at: null,
  delivered_by: null,
  sealed_at: null,
  sealed_by: null,
  restored_at: null,
  unfulfilled_at: null,
} as const

/**
 * An open order is looked up again after a tenth of the time since its quote ended, within these bounds. A payment that
 * was under way when the quote ended arrives soon after, if at all; later, the node has forgotten the order, and there
 * may be many like it.
 */
export const LOOK_UP_AGAIN_MS = { least: 15_000, most: 3_600_000 }

/**
 * The only transition of a sale that provisions. It also claims the delivery if `delivered_at` is set. A dead
 * order may still turn out to be paid.
 */
export const settleOrder = (
  orderId: string,
  settled: Pick<
    OrderRow,
    'settled_at' | 'settled_by' | 'public_id' | 'seed' | 'expires_at' | 'delivered_at'
  >,
  isUnfulfilledToo = false,
): Statement => ({
  text: `update purchase_order
    set state = 'settled', settled_at = $2, settled_by = $3, public_id = $4, seed = $5,
      expires_at = $6, delivered_at = $7,
      unfulfilled_at = case when state = 'paid_unfulfilled' then settled_at else unfulfilled_at end
    where order_id = $1
      and (state in ('pending', 'dead') or (state = 'paid_unfulfilled' and $8 = 1))`,
  values: [
    orderId,
    settled.settled_at,
    settled.settled_by,
    settled.public_id,
    settled.seed,
    settled.expires_at,
    settled.delivered_at,
    isUnfulfilledToo ? 1 : 0,
  ],
  expect: 1,
})

export const failSettlement = (orderId: string, now: number, by: SettledBy): Statement => ({
  text: `update purchase_order set state = 'paid_unfulfilled', settled_at = $2, settled_by = $3
    where order_id = $1 and state in ('pending', 'dead') returning *`,
  values: [orderId, now, by],
})

export const killOrder = (orderId: string, isFinal: boolean): Statement => ({
  text: `update purchase_order set state = 'dead', is_dead_final = $2
    where order_id = $1 and state = 'pending'`,
  values: [orderId, isFinal ? 1 : 0],
  expect: 1,
})

/** The node has confirmed that the order is dead: it need not be asked again. */
export const confirmDead = (orderId: string): Statement => ({
  text: `update purchase_order set is_dead_final = 1
    where order_id = $1 and state = 'dead' and is_dead_final = 0`,
  values: [orderId],
})

/** Claims the one delivery, before the answer is written. Refused without proof if the order is contested. */
export const deliverOrder = (orderId: string, now: number, isProven: boolean): Statement => ({
  text: `update purchase_order set delivered_at = $2
    where order_id = $1 and state = 'settled' and delivered_at is null and sealed_at is null
      and expires_at > $2 and contested <= $3 returning *`,
  values: [orderId, now, isProven ? 1 : 0],
})

/** Notes permanently that the quote of an open order is shown to a client who did not open it. */
export const contestOrder = (orderId: string): Statement => ({
  text: `update purchase_order set contested = 1
    where order_id = $1 and contested = 0 and state = 'pending' returning *`,
  values: [orderId],
})

/** Keys that one order may have besides its own: far more than a program makes attempts. */
export const MAX_ALIASES = 64

/**
 * Gives an order the name that a key stands for, unless that names one already. Its own name and its aliases are in one
 * table with one unique key, so that a key never names two orders, whichever instances insert them at once.
 */
export const insertName = (orderId: string): Statement => ({
  text: `insert into order_name (name, order_id) values ($1, $1) on conflict (name) do nothing`,
  values: [orderId],
  expect: 1,
})

/** Keeps an order from being deleted until the unit commits. Refuses the unit if it is gone. */
export const holdOrder = (orderId: string): Statement => ({
  text: 'update purchase_order set state = state where order_id = $1',
  values: [orderId],
  expect: 1,
})

export const insertAlias = (name: string, orderId: string): Statement => ({
  text: `insert into order_name (name, order_id) select $1, $2
    where (select count(*) from order_name
      where order_id = $2 and name <> order_id) < ${MAX_ALIASES}
    on conflict (name) do nothing`,
  values: [name, orderId],
})

/** Ends the replay of a delivered answer and wipes the seed. Goes into the unit of a token's use. */
export const sealDelivery = (publicId: string, now: number): Statement => ({
  text: `update purchase_order set seed = null, sealed_at = $2, sealed_by = 'use'
    where public_id = $1 and sealed_at is null`,
  values: [publicId, now],
})

/** The node may still have news about an order that is open, or whose death is only a guess. */
const MAY_HAVE_NEWS = `(state = 'pending' or (state = 'dead' and is_dead_final = 0))`

export const mayHaveNews = ({ state, is_dead_final }: OrderRow): boolean =>
  state === 'pending' || (state === 'dead' && is_dead_final === 0)

/** Claims the next look-up at the node. It returns no row if anybody has looked the order up since `lastAt`. */
export const claimLookup = (orderId: string, now: number, lastAt: number): Statement => ({
  text: `update purchase_order set looked_up_at = $2
    where order_id = $1 and ${MAY_HAVE_NEWS} and looked_up_at <= $3 returning *`,
  values: [orderId, now, lastAt],
})

export const sealOverdue = (now: number, replayMs: number): Statement => ({
  text: `update purchase_order set seed = null, sealed_at = $1, sealed_by = 'age'
    where seed is not null and (expires_at <= $1 or delivered_at <= $1 - $2)`,
  values: [now, replayMs],
})

/**
 * Runs a unit that provisions. It throws if the store is unreachable, full or broken, because that says
 * nothing about the order. A refused value is a fault of the order: the store would refuse it every time.
 */
export async function written<Name extends string>(
  db: Db,
  unit: Unit<Name>,
): Promise<Awaited<ReturnType<typeof attempt<Name>>> | { fault: ValueRefused }> {
  try {
    return await attempt(db.write(unit))
  } catch (error) {
    if (error instanceof ValueRefused) return { fault: error }
    throw error
  }
}

export function createOrderStore(db: Db) {
  const one = async (
    orderId: string,
    statement: Statement,
    durability: Durability = 'flushed',
  ): Promise<OrderRow | null> => {
    const { order } = await db.write({
      lockKey: orderId,
      statements: { order: statement },
      durability,
    })
    return (order[0] as OrderRow | undefined) ?? null
  }
  return {
    /** Changes one order by a statement that returns its row; null if its condition did not hold. */
    one,

    async find(orderId: string): Promise<OrderRow | null> {
      const [order] = await db.read<OrderRow>(
        'select * from purchase_order where order_id = $1',
        orderId,
      )
      return order ?? null
    },

    /**
     * The order that a key names, and the one with a payment hash. `names` are those that the key stands for. An alias
     * comes first, because its maker proved the payment of its order.
     */
    async candidates(
      names: string[],
      paymentHash: string | null,
    ): Promise<{ byKey: OrderRow | null; byHash: OrderRow | null }> {
      const named = `select o.*, n.name as named from order_name n
        join purchase_order o on o.order_id = n.order_id where n.name in (${places(names, 2)})`
      const paid = `select o.*, '' as named from purchase_order o where o.payment_hash = $1`
      const parts = [...(names.length > 0 ? [named] : []), paid]
      const rows = await db.read<OrderRow & { named: string }>(
        parts.join(' union all '),
        paymentHash,
        ...names,
      )
      const alias = rows.find((row) => row.named !== '' && row.named !== row.order_id)
      const own = names.map((name) => rows.find((row) => row.named === name)).find((row) => row)
      const byHash = rows.find((row) => row.named === '')
      return { byKey: alias ?? own ?? null, byHash: byHash ?? null }
    },

    /** Whether one of these names is that of the order. */
    async isNamed(orderId: string, names: string[]): Promise<boolean> {
      const rows = await db.read(
        `select 1 as here from order_name where order_id = $1 and name in (${places(names, 2)})`,
        orderId,
        ...names,
      )
      return rows.length > 0
    },

    async findByPaymentHash(paymentHash: string): Promise<OrderRow | null> {
      const [order] = await db.read<OrderRow>(
        'select * from purchase_order where payment_hash = $1',
        paymentHash,
      )
      return order ?? null
    },

    /** How many open quotes a client network has, and when the first of them ends. */
    async openOf(
      clientNetwork: string,
      now: number,
    ): Promise<{ count: number; firstEnd: number | null }> {
      const [open] = await db.read<{ count: number; first: number | null }>(
        `select count(*) as count, min(quote_expires_at) as first from purchase_order
         where client_network = $1 and state = 'pending' and quote_expires_at > $2`,
        clientNetwork,
        now,
      )
      return { count: Number(open?.count ?? 0), firstEnd: open?.first ?? null }
    },

    /** How many unpaid orders would extend a capability. */
    async openExtensions(publicId: string): Promise<number> {
      const [row] = await db.read<{ count: number }>(
        `select count(*) as count from purchase_order
         where extends_id = $1 and state = 'pending'`,
        publicId,
      )
      return Number(row?.count ?? 0)
    },

    /** Pending orders that nobody looked up since the pass began, the longest waiting first. */
    pending(startedAt: number, limit: number): Promise<OrderRow[]> {
      return db.read<OrderRow>(
        `select * from purchase_order
         where state = 'pending' and looked_up_at < $1
         order by looked_up_at ${limitedTo(2)}`,
        startedAt,
        limit,
      )
    },

    /** Pending orders whose next look-up is due, the longest waiting first. */
    due(startedAt: number, limit: number): Promise<OrderRow[]> {
      const { least, most } = LOOK_UP_AGAIN_MS
      return db.read<OrderRow>(
        `select * from purchase_order where state = 'pending' and looked_up_at < $2
           and looked_up_at + case when quote_expires_at < $1 - ${10 * most} then ${most}
             when quote_expires_at < $1 - ${10 * least} then ($1 - quote_expires_at) / 10
             else ${least} end < $1
         order by looked_up_at ${limitedTo(3)}`,
        startedAt,
        startedAt - least,
        limit,
      )
    },

    /** Orders whose death is a guess and that were not looked up since the pass began; newest look-up first. */
    deadByGuess(startedAt: number, limit: number): Promise<OrderRow[]> {
      return db.read<OrderRow>(
        `select * from purchase_order
         where state = 'dead' and is_dead_final = 0 and looked_up_at < $1
         order by looked_up_at desc ${limitedTo(2)}`,
        startedAt,
        limit,
      )
    },

    /** Counts orders that are open or still deliverable and were made under none of these secrets. */
    async foreign(secretIds: string[], now: number): Promise<number> {
      const list = places(secretIds, 2)
      const [row] = await db.read<{ count: number }>(
        `select count(*) as count from purchase_order
         where secret_id not in (${list})
           and (state = 'pending' or (seed is not null and expires_at > $1))`,
        now,
        ...secretIds,
      )
      return row?.count ?? 0
    },
  }
}

export type OrderStore = ReturnType<typeof createOrderStore>
