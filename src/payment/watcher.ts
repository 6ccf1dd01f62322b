/**
 * Learns of settlements that no buyer asks about: the node's stream as a hint, a sweep over open
 * orders as the truth, and a full pass at start-up for what happened while we were away.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from '../db/db.ts'
import { alone, type InTurn } from '../db/leases.ts'
import type { Clock } from '../lib/clock.ts'
import type { Lightning } from '../lightning/lightning.ts'
import type { PaymentLog } from './log.ts'
import { type Orders, REPLAY_MS } from './orders.ts'
import {
  claimSweep,
  createOrderStore,
  type OrderRow,
  type Pauses,
  purgeOrders,
  sealOverdue,
} from './store.ts'

const SWEEP_EVERY_MS = 15_000
const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000]
/**
 * How often an order that nobody polls is looked up. A payment that was under way when the quote
 * ended comes soon after, if at all; what stays open for longer is what the node has forgotten, and
 * may be a great many. None is ever given up.
 */
export const PAUSES: Pauses = [
  { endedMs: 0, everyMs: SWEEP_EVERY_MS },
  { endedMs: MINUTE_MS, everyMs: MINUTE_MS },
  { endedMs: HOUR_MS, everyMs: 10 * MINUTE_MS },
  { endedMs: 24 * HOUR_MS, everyMs: HOUR_MS },
]
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
  /** Follows a word of the node about an invoice; what fails is logged, and the sweep's to find. */
  hint(paymentHash: string): Promise<void>
  /** Resolves when nothing is under way any more. */
  stopped(): Promise<void>
}

export function createWatcher(deps: {
  db: Db
  lightning: Lightning
  orders: Orders
  clock: Clock
  log: PaymentLog
  /** Shares the cleaning up with other instances; look-ups are claimed one by one. */
  inTurn?: InTurn
}): Watcher {
  const { db, lightning, orders, clock, log, inTurn = alone } = deps
  const store = createOrderStore(db)
  let running: Promise<unknown> = Promise.resolve()

  /** Looks up what `next` finds until that is nothing; ends early when the node cannot be asked. */
  async function pass(next: () => Promise<OrderRow[]>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const batch = await next()
      if (batch.length === 0) return
      for (let i = 0; i < batch.length && !signal.aborted; i += LOOKUPS_AT_ONCE) {
        const some = batch.slice(i, i + LOOKUPS_AT_ONCE)
        // Claimed before they are looked up: one that always fails must not hold up the rest.
        const claimed = await Promise.all(
          some.map((order) =>
            store.one(claimSweep(order.order_id, order.looked_up_at, clock.now()), 'with the next'),
          ),
        )
        const ours = claimed.filter((order) => order !== null)
        const asked = await Promise.all(ours.map((order) => orders.lookUp(order, 'lookup')))
        if (!asked.every(Boolean)) return
      }
    }
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    const startedAt = clock.now()
    const open = () => store.pending(startedAt, clock.now(), SWEEP_ORDERS)
    const due = () => store.due(clock.now(), PAUSES, SWEEP_ORDERS)
    await guarded('order.pass_failed', () => pass(open, signal))
    while (await pause(SWEEP_EVERY_MS, signal)) {
      await guarded('order.sweep_failed', () => pass(due, signal))
      await guarded('order.cleanup_failed', () => inTurn('order.cleanup', SWEEP_EVERY_MS, cleanUp))
    }
  }

  async function cleanUp(): Promise<void> {
    const now = clock.now()
    await db.write([sealOverdue(now, REPLAY_MS), purgeOrders(now - KEEP_MS)])
    await orders.dropAbandoned(now - ABANDONED_MS)
  }

  async function watch(signal: AbortSignal): Promise<void> {
    let wait = RECONNECT_FIRST_MS
    while (!signal.aborted) {
      const startedAt = clock.now()
      try {
        await lightning.watch((paymentHash) => void hint(paymentHash), signal)
      } catch (error) {
        log.warn({ event: 'lightning.stream_ended', reason: String(error) })
      }
      if (clock.now() - startedAt > RECONNECT_MOST_MS) wait = RECONNECT_FIRST_MS
      if (!(await pause(wait, signal))) return
      wait = Math.min(wait * 2, RECONNECT_MOST_MS)
    }
  }

  function hint(paymentHash: string): Promise<void> {
    return guarded('order.hint_failed', () => orders.reconcile(paymentHash, 'stream'))
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
    hint,
    async stopped() {
      await running
    },
  }
}

/** True after the time, false when the signal aborts first. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal })
    return true
  } catch {
    return false
  }
}
