/**
 * Sales: one row for each settled order, written in the unit that settles it, and one for each refund. Orders are
 * deleted a month after their end; these are kept for the operator's books, and have no id, key, network or address of
 * a buyer.
 */
import { type Db, limitedTo, type Row, type Statement } from '../db/db.ts'
import type { PlanId, Product } from '../lib/product-names.ts'
import type { Network } from '../lightning/lightning.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** How many rows one pass deletes; the next pass goes on. */
const PURGED_ROWS = 500
/** How many rows are in memory while they are read. */
const PAGE_ROWS = 1_000
/** Comes before every payment hash. */
const NO_HASH = ''

export type Sale = {
  /** Hex. */
  payment_hash: string
  settled_at: number
  product: Product
  plan_id: PlanId
  amount_sats: number
  network: Network
}

type SaleRow = Sale & Row

const COLUMNS = 'payment_hash, settled_at, product, plan_id, amount_sats, network'

/** Belongs in the unit that settles the order, after the statement that does so. */
export const recordSale = (orderId: string): Statement => ({
  text: `insert into sale (${COLUMNS}) select ${COLUMNS} from purchase_order
    where order_id = $1 and state = 'settled' on conflict (payment_hash) do nothing`,
  values: [orderId],
})

/** What the operator has paid back. */
export type Refund = { refunded_at: number; amount_sats: number; reason: string }

/** Belongs in the unit that ends the order. Refused if its payment was paid back before. */
export const recordRefund = (refund: {
  paymentHash: string
  refundedAt: number
  amountSats: number
  /** The operator's own words. */
  reason: string
}): Statement => ({
  text: `insert into refund (payment_hash, refunded_at, amount_sats, reason) values ($1, $2, $3, $4)
    on conflict (payment_hash) do nothing`,
  values: [refund.paymentHash, refund.refundedAt, refund.amountSats, refund.reason],
  expect: 1,
})

/** The sale with this payment hash, or null. */
export async function findSale(db: Db, paymentHash: string): Promise<Sale | null> {
  const [sale] = await db.read<SaleRow>(
    `select ${COLUMNS} from sale where payment_hash = $1`,
    paymentHash,
  )
  return sale ?? null
}

/** The refund of this payment hash, or null. */
export async function findRefund(db: Db, paymentHash: string): Promise<Refund | null> {
  const [refund] = await db.read<Refund & Row>(
    'select refunded_at, amount_sats, reason from refund where payment_hash = $1',
    paymentHash,
  )
  return refund ?? null
}

/** A row of the books. That of a refund has its own time, and a negative amount. */
export type Entry = Omit<Sale, 'settled_at'> & {
  at: number
  is_refund: 0 | 1
  /** Why it was paid back; empty for a sale. */
  reason: string
}

/** What was sold and paid back, as one list. What was paid back without a sale is in neither. */
const ENTRIES = `
  select payment_hash, settled_at as at, product, plan_id, amount_sats, network, 0 as is_refund, '' as reason
    from sale where settled_at >= $1 and settled_at < $4
  union all
  select s.payment_hash, r.refunded_at, s.product, s.plan_id, -r.amount_sats, s.network, 1, r.reason
    from refund r join sale s on s.payment_hash = r.payment_hash
    where r.refunded_at >= $1 and r.refunded_at < $4`

/** The entries from `from` and before `to`, oldest first, one page at a time. */
export async function* entriesBetween(
  db: Db,
  { from, to }: { from: number; to: number },
): AsyncGenerator<Entry[]> {
  let last: Pick<Entry, 'at' | 'payment_hash' | 'is_refund'> = {
    at: from,
    payment_hash: NO_HASH,
    is_refund: 0,
  }
  for (;;) {
    const page = await db.read<Entry & Row>(
      `select * from (${ENTRIES}) as entry
        where (at, payment_hash, is_refund) > ($1, $2, $3)
        order by at, payment_hash, is_refund ${limitedTo(5)}`,
      last.at,
      last.payment_hash,
      last.is_refund,
      to,
      PAGE_ROWS,
    )
    if (page.length > 0) yield page
    last = page.at(-1) ?? last
    if (page.length < PAGE_ROWS) return
  }
}

/** Deletes some of the sales and refunds that are older than they are kept. */
export async function purgeSales(
  db: Db,
  { keptDays, now }: { keptDays: number; now: number },
): Promise<void> {
  const end = now - keptDays * DAY_MS
  await db.write({
    lockKey: 'sale',
    statements: {
      sales: deleteOld('sale', 'settled_at', end),
      refunds: deleteOld('refund', 'refunded_at', end),
    },
  })
}

const deleteOld = (table: 'sale' | 'refund', time: string, end: number): Statement => ({
  text: `delete from ${table} where payment_hash in (
    select payment_hash from ${table} where ${time} < $1 order by ${time}
    limit ${PURGED_ROWS})`,
  values: [end],
})
