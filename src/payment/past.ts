/**
 * What stays of an order when its row goes: its payment hash and how it ended. A credential that
 * proves a payment can so be told from one whose order was lost, which is an alarm.
 */
import type { Db, Statement } from '../db/db.ts'
import type { DeletionTime } from '../lib/clock.ts'

/** How many rows one pass takes; the next one takes the rest. */
const AT_ONCE = 500

/**
 * What was paid stays for good: its credential has no end, and there is one a sale, of some 100
 * bytes. Unpaid orders cost nothing to make, so that what stays of them ends: this long after the row.
 */
export const KEEP_DEAD_MS = 90 * 24 * 60 * 60 * 1000

/** Finished, and never one that owes somebody something, or that was paid back. */
const IS_OVER = `((state = 'settled' and expires_at < $1)
  or (state = 'dead' and quote_expires_at < $1)) and payment_hash is not null`

/**
 * The statements that forget orders which were over before a time: one unit. No row goes without
 * what stays of it, and the keys that were its aliases go with it.
 */
export function purgeOrders(before: DeletionTime, now: DeletionTime): Statement[] {
  return [
    {
      text: `insert into order_tombstone (payment_hash, ended, ended_at)
        select payment_hash, case when state = 'dead' then 'dead' when sealed_by = 'use' then 'used'
          else 'aged' end, cast($2 as bigint)
        from purchase_order where ${IS_OVER} limit ${AT_ONCE}
        on conflict (payment_hash) do nothing`,
      values: [before, now],
    },
    {
      text: `delete from order_alias where order_id in (${buried})`,
      values: [before],
    },
    {
      text: `delete from purchase_order where order_id in (${buried})`,
      values: [before],
    },
    {
      text: `delete from order_tombstone where payment_hash in (
        select payment_hash from order_tombstone where ended = 'dead' and ended_at < $1
        limit ${AT_ONCE})`,
      values: [now - KEEP_DEAD_MS],
    },
  ]
}

const buried = `select o.order_id from purchase_order o where ${IS_OVER}
  and exists (select 1 from order_tombstone t where t.payment_hash = o.payment_hash)`

/** Whether an order with this invoice was here, and went as orders do. */
export async function isPast(db: Db, paymentHash: string): Promise<boolean> {
  const rows = await db.read(
    'select 1 as here from order_tombstone where payment_hash = $1',
    paymentHash,
  )
  return rows.length > 0
}
