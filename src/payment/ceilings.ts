/**
 * Ceilings on what is sold on one UTC day: by the service, and to one client network. They count settled orders,
 * in the store that all instances share, and are asked only for an order that does not exist yet: what was quoted
 * before may still be paid. So a day may end a little above them. What is owed is no sale. What was sold stays one if it
 * is paid back: its buyer had it.
 */
import { type Db, limitedTo } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** The sales of the whole service are counted this often, since every quote would count them all again. */
const COUNTED_EVERY_MS = 1_000

/** Numbers of settled orders on a UTC day. Null: any number. */
export type MaxSales = { perDay: number | null; perNetwork: number | null }

/** Null if nothing is limited, so that no quote asks. */
export function createCeilings(
  { perDay, perNetwork }: MaxSales,
  { db, clock, log }: { db: Pick<Db, 'read'>; clock: Clock; log: Log },
) {
  if (perDay === null && perNetwork === null) return null
  let counted = { at: Number.NEGATIVE_INFINITY, count: 0 }
  let warnedOn = 0

  /** The sales of this day, counted up to the ceiling. */
  async function salesSince(day: number, max: number): Promise<number> {
    const now = clock.now()
    // Not across midnight, nor after the clock was set back.
    if (counted.at >= day && now >= counted.at && now - counted.at < COUNTED_EVERY_MS) {
      return counted.count
    }
    const count = countIn(await db.read(SALES, day, max))
    counted = { at: now, count }
    return count
  }

  return {
    /** The time until an order may be opened again, in milliseconds, or null if it may be now. */
    async waitMs(clientNetwork: string): Promise<number | null> {
      const now = clock.now()
      const day = now - (now % DAY_MS)
      const untilTomorrow = day + DAY_MS - now
      if (perDay !== null && (await salesSince(day, perDay)) >= perDay) {
        if (warnedOn !== day) log.warn({ event: 'checkout.ceiling_reached', sales: perDay })
        warnedOn = day
        return untilTomorrow
      }
      if (perNetwork === null) return null
      const bought = countIn(await db.read(SALES_TO_NETWORK, clientNetwork, day, perNetwork))
      return bought >= perNetwork ? untilTomorrow : null
    },
  }
}

const SALES = `select count(*) as n from (
  select 1 as one from sale where settled_at >= $1 ${limitedTo(2)}) as sales`

const SALES_TO_NETWORK = `select count(*) as n from (
  select 1 as one from purchase_order o
  where client_network = $1 and o.settled_at is not null and o.settled_at >= $2
    and exists (select 1 from sale s where s.payment_hash = o.payment_hash)
  ${limitedTo(3)}) as sales`

const countIn = (rows: Record<string, unknown>[]): number => Number(rows[0]?.n)
