/**
 * Sales: one row for each settled order, written in the unit that settles it. Orders are deleted a month after
 * their end; sales are kept for the operator's books, and have no id, key, network or address of a buyer.
 */
import { type Db, limitedTo, type Row, type Statement } from '../db/db.ts'
import { before, type DeletionTime } from '../lib/clock.ts'
import type { PlanId, Product } from '../lib/product-names.ts'
import type { Network } from '../lightning/lightning.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** How many rows one pass deletes; the next pass goes on. */
const PURGED_ROWS = 500
/** How many rows are in memory while sales are read, and written at once by `recordMissedSales`. */
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

/** Without these the row says nothing to the books; every order that has an invoice has them. */
const IS_SALE = `state = 'settled' and payment_hash is not null and settled_at is not null
  and network is not null`

/** Belongs in the unit that settles the order, after the statement that does so. */
export const recordSale = (orderId: string): Statement => ({
  text: `insert into sale (${COLUMNS}) select ${COLUMNS} from purchase_order
    where order_id = $1 and ${IS_SALE} on conflict (payment_hash) do nothing`,
  values: [orderId],
})

/** The sale with this payment hash, or null. */
export async function findSale(db: Db, paymentHash: string): Promise<Sale | null> {
  const [sale] = await db.read<SaleRow>(
    `select ${COLUMNS} from sale where payment_hash = $1`,
    paymentHash,
  )
  return sale ?? null
}

/** The sales from `from` and before `to`, oldest first, one page at a time. */
export async function* salesBetween(
  db: Db,
  { from, to }: { from: number; to: number },
): AsyncGenerator<Sale[]> {
  let last = { settled_at: from, payment_hash: NO_HASH }
  for (;;) {
    const page = await db.read<SaleRow>(
      `select ${COLUMNS} from sale
        where (settled_at, payment_hash) > ($1, $2) and settled_at < $3
        order by settled_at, payment_hash ${limitedTo(4)}`,
      last.settled_at,
      last.payment_hash,
      to,
      PAGE_ROWS,
    )
    if (page.length > 0) yield page
    last = page.at(-1) ?? last
    if (page.length < PAGE_ROWS) return
  }
}

export type SalesUpkeep = {
  /** Deletes some of the sales that were settled longer ago than they are kept. @returns how many. */
  purge(now: DeletionTime): Promise<number>
  /** Writes the sales of orders that an instance of an older release has settled since the migration. */
  recordMissed(now: DeletionTime): Promise<void>
}

export function createSalesUpkeep(db: Db, { keptDays }: { keptDays: number }): SalesUpkeep {
  const end = (now: DeletionTime): number => before(now, keptDays * DAY_MS)

  return {
    async purge(now) {
      const { gone } = await db.write({
        lockKey: 'sale',
        statements: {
          gone: {
            text: `delete from sale where payment_hash in (
              select payment_hash from sale where settled_at < $1 order by settled_at
              limit ${PURGED_ROWS}) returning payment_hash`,
            values: [end(now)],
          },
        },
      })
      return gone.length
    },

    async recordMissed(now) {
      const missed = `from purchase_order o where ${IS_SALE} and settled_at >= $1
        and not exists (select 1 from sale s where s.payment_hash = o.payment_hash) limit ${PAGE_ROWS}`
      // Asked first: as a rule there are none, and a look at all settled orders must not hold up the writes.
      while ((await db.read(`select 1 as missed ${missed}`, end(now))).length > 0) {
        await db.write({
          lockKey: 'sale',
          statements: {
            sales: {
              text: `insert into sale (${COLUMNS}) select ${COLUMNS} ${missed}
                on conflict (payment_hash) do nothing`,
              values: [end(now)],
            },
          },
        })
      }
    },
  }
}
