/**
 * Learns of settlements that no buyer asks about: the node's stream as a hint, a sweep over open
 * orders as the truth, and a full pass at start-up for what happened while we were away.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import type { Lightning } from '../lightning/lightning.ts'
import type { PaymentLog } from './log.ts'
import { type Orders, REPLAY_MS } from './orders.ts'
import { createOrderStore, purgeOrders, sealOverdue } from './store.ts'

/** An order that nobody polls is looked up this often. */
const SWEEP_EVERY_MS = 15_000
const SWEEP_ORDERS = 200
const LOOKUPS_AT_ONCE = 8
const RECONNECT_FIRST_MS = 500
const RECONNECT_MOST_MS = 30_000
/** Rows stay this long past the end of quote or capability, so that a late repeat finds its order. */
const KEEP_MS = 30 * 24 * 60 * 60 * 1000
/** An opening order this old was left by a process that died before it had an invoice. */
const ABANDONED_MS = 10 * 60 * 1000

export type Watcher = {
  /** Looks up every open order once, then keeps watching until `signal` aborts. */
  start(signal: AbortSignal): void
  /** Resolves when nothing is under way any more. */
  stopped(): Promise<void>
}

export function createWatcher(deps: {
  db: Db
  lightning: Lightning
  orders: Orders
  clock: Clock
  log: PaymentLog
}): Watcher {
  const { db, lightning, orders, clock, log } = deps
  const store = createOrderStore(db)
  let running: Promise<unknown> = Promise.resolve()

  /** Looks up the orders not looked up since `before`; ends early when the node cannot be asked. */
  async function pass(before: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const batch = await store.pending(before, SWEEP_ORDERS)
      if (batch.length === 0) return
      for (let i = 0; i < batch.length && !signal.aborted; i += LOOKUPS_AT_ONCE) {
        const some = batch.slice(i, i + LOOKUPS_AT_ONCE)
        // Claimed before they are looked up: one that always fails must not hold up the rest.
        const claimed = await Promise.all(
          some.map((order) => store.one(claimSweep(order.order_id, before, clock.now()))),
        )
        const ours = claimed.filter((order) => order !== null)
        const asked = await Promise.all(ours.map((order) => orders.lookUp(order, 'lookup')))
        if (!asked.every(Boolean)) return
      }
    }
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    await guarded('order.pass_failed', () => pass(clock.now(), signal))
    while (await pause(SWEEP_EVERY_MS, signal)) {
      await guarded('order.sweep_failed', () => pass(clock.now() - SWEEP_EVERY_MS, signal))
      await guarded('order.cleanup_failed', async () => {
        const now = clock.now()
        await db.write([sealOverdue(now, REPLAY_MS), purgeOrders(now - KEEP_MS)])
        await orders.dropAbandoned(now - ABANDONED_MS)
      })
    }
  }

  async function watch(signal: AbortSignal): Promise<void> {
    let wait = RECONNECT_FIRST_MS
    while (!signal.aborted) {
      const startedAt = clock.now()
      try {
        await lightning.watch((paymentHash) => {
          void guarded('order.hint_failed', () => orders.reconcile(paymentHash, 'stream'))
        }, signal)
      } catch (error) {
        log.warn({ event: 'lightning.stream_ended', reason: String(error) })
      }
      if (clock.now() - startedAt > RECONNECT_MOST_MS) wait = RECONNECT_FIRST_MS
      if (!(await pause(wait, signal))) return
      wait = Math.min(wait * 2, RECONNECT_MOST_MS)
    }
  }

  async function guarded(event: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (error) {
      log.error({ event, reason: String(error) })
    }
  }

  return {
    start(signal) {
      running = Promise.all([sweep(signal), watch(signal)])
    },
    async stopped() {
      await running
    },
  }
}

/** Counts as a look-up of its second, like any other; refused where somebody has looked since. */
const claimSweep = (orderId: string, before: number, now: number) => ({
  text: `update purchase_order set looked_up_at = $3
    where order_id = $1 and state = 'pending' and looked_up_at < $2 returning *`,
  values: [orderId, before, now],
})

/** True after the time, false when the signal aborts first. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal })
    return true
  } catch {
    return false
  }
}
