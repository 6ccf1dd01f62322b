/**
 * The tombstone of an order outlives its row: the payment hash and how the order ended. It distinguishes
 * a credential of an order that was deleted in time from one whose order was lost, which is an alarm.
 */
import type { Db, Row, Statement } from '../db/db.ts'

/** How many rows one pass deletes; the next pass goes on. */
const BATCH_ROWS = 500

/**
 * The tombstone of a paid order is kept for good: its credential never expires, and each sale costs some
 * 100 bytes. Unpaid orders cost nothing to make, so their tombstones are deleted this long after the row.
 */
export const KEEP_DEAD_MS = 90 * 24 * 60 * 60 * 1000

/** Finished orders, but not those that are paid and unfulfilled. The refund outlives its order. */
const IS_OVER = `((state = 'settled' and expires_at < $1)
  or (state = 'refunded' and sealed_at < $1)
  or (state = 'dead' and quote_expires_at < $1))`

/**
 * The statements that delete the orders which were over before a time; they belong in one unit. Each row
 * leaves a tombstone and takes its names with it. An order that was restored after its death leaves its second
 * end: it is paid, and must not be restored again.
 */
export function purgeOrders(before: number, now: number): Statement[] {
  return [
    {
      text: `insert into order_tombstone (payment_hash, ended, ended_at)
        select payment_hash, case when state = 'dead' then 'dead' when sealed_by = 'use' then 'used'
          else 'aged' end, cast($2 as bigint)
        from purchase_order where ${IS_OVER} limit ${BATCH_ROWS}
        on conflict (payment_hash) do update set ended = excluded.ended, ended_at = excluded.ended_at`,
      values: [before, now],
    },
    // Locks them: on PostgreSQL another instance may be settling one that was dead, which must then stay, with its names.
    {
      text: `update purchase_order set state = state where ${IS_OVER} and exists (
        select 1 from order_tombstone t where t.payment_hash = purchase_order.payment_hash)`,
      values: [before],
    },
    {
      text: `delete from order_name where name in (${buried})
          or (order_id in (${buried}) and name <> order_id)`,
      values: [before],
    },
    {
      text: `delete from purchase_order where order_id in (${buried})`,
      values: [before],
    },
    {
      // Said twice, because on PostgreSQL only the outer condition is asked again of a row that was just changed.
      text: `delete from order_tombstone where ended = 'dead' and ended_at < $1 and payment_hash in (
        select payment_hash from order_tombstone where ended = 'dead' and ended_at < $1
        limit ${BATCH_ROWS})`,
      values: [now - KEEP_DEAD_MS],
    },
  ]
}

const buried = `select o.order_id from purchase_order o where ${IS_OVER}
  and exists (select 1 from order_tombstone t where t.payment_hash = o.payment_hash)`

/** How an order ended that was deleted. `aged`: paid, and either never collected or never used. */
export type Tombstone = { payment_hash: string; ended: 'used' | 'aged' | 'dead'; ended_at: number }

/** What is left of an order that was deleted after it was over, or null. */
export async function findTombstone(db: Db, paymentHash: string): Promise<Tombstone | null> {
  const [tombstone] = await db.read<Tombstone & Row>(
    'select payment_hash, ended, ended_at from order_tombstone where payment_hash = $1',
    paymentHash,
  )
  return tombstone ?? null
}
