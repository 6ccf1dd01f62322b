/**
 * Learns of settlements that no buyer asks about. The node's stream gives hints, a regular sweep over open
 * orders finds what the stream missed, and a full pass at the start finds what happened while we were down.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type Db, StoreAway } from '../db/db.ts'
import { alone, type InTurn } from '../db/leases.ts'
import type { HeldClock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import type { Lightning } from '../lightning/lightning.ts'
import { REPLAY_MS } from './order.ts'
import type { Orders } from './orders.ts'
import {
  claimLookup,
  createOrderStore,
  LOOK_UP_AGAIN_MS,
  type OrderRow,
  sealOverdue,
} from './store.ts'
import { purgeOrders } from './tombstones.ts'

const SWEEP_EVERY_MS = LOOK_UP_AGAIN_MS.least
const SWEEP_ORDERS = 200
const LOOKUPS_AT_ONCE = 8
/**
 * How many orders whose death is a guess are looked up after each sweep, until each was looked up once since
 * the start. There may be a month of them, and open orders must not wait for them.
 */
const DEAD_ORDERS = 64
const RECONNECT_MIN_MS = 500
const RECONNECT_MAX_MS = 30_000
/** Rows are kept this long after the end of the quote or the capability: a late repeat finds its order. */
const KEEP_MS = 30 * 24 * 60 * 60 * 1000

export function createWatcher(deps: {
  db: Db
  lightning: Lightning
  orders: Orders
  clock: HeldClock
  log: Log
  /** Shares the clean-up with other instances. Look-ups need no turn, because each is claimed. */
  inTurn?: InTurn
}) {
  const { db, lightning, orders, clock, log, inTurn = alone } = deps
  const store = createOrderStore(db)
  let running: Promise<unknown> = Promise.resolve()

  /** Looks up the orders of `next` until it returns an empty batch, or until some batch ends the pass. */
  async function pass(
    next: (startedAt: number) => Promise<OrderRow[]>,
    signal: AbortSignal,
  ): Promise<void> {
    const startedAt = clock.now()
    for (;;) {
      const batch = await next(startedAt)
      if (batch.length === 0 || !(await lookUpAll(batch, startedAt, signal))) return
    }
  }

  /**
   * False to end the pass: at a stop, when the node cannot be asked, or when the clock went back, since what is claimed
   * then would come again and again.
   */
  async function lookUpAll(
    batch: OrderRow[],
    startedAt: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    for (let i = 0; i < batch.length; i += LOOKUPS_AT_ONCE) {
      const now = clock.now()
      if (signal.aborted || now < startedAt) return false
      // Claimed before the look-up: an order that always fails must not hold up the rest.
      const claims = await Promise.all(
        batch
          .slice(i, i + LOOKUPS_AT_ONCE)
          .map(({ order_id: orderId, looked_up_at: lastAt }) =>
            store.one(orderId, claimLookup(orderId, now, lastAt), 'deferred'),
          ),
      )
      const claimed = claims.filter((order) => order !== null)
      const answers = await Promise.all(claimed.map(lookUp))
      // One answer shows that the node is reachable; its answer about another order may be unreadable.
      if (claimed.length > 0 && !answers.some(Boolean)) return false
    }
    return true
  }

  /** False if the node was unreachable. A failure of only this order does not stop the pass. */
  async function lookUp(order: OrderRow): Promise<boolean> {
    try {
      return await orders.lookUp(order, 'lookup')
    } catch (error) {
      if (error instanceof StoreAway) throw error
      log.error({
        event: 'order.lookup_failed',
        paymentHash: order.payment_hash,
        reason: messageOf(error),
      })
      return true
    }
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    const begunAt = clock.now()
    /** Looks up some of the orders whose death was a guess at the start. The next sweeps do the others. */
    const someDead = (): Promise<void> =>
      guarded('order.pass_failed', async () => {
        await lookUpAll(await store.deadByGuess(begunAt, DEAD_ORDERS), clock.now(), signal)
      })
    const open = (startedAt: number) => store.pending(startedAt, SWEEP_ORDERS)
    const due = (startedAt: number) => store.due(startedAt, SWEEP_ORDERS)
    await guarded('order.pass_failed', () => pass(open, signal))
    await someDead()
    while (await pause(SWEEP_EVERY_MS, signal)) {
      await guarded('order.sweep_failed', () => pass(due, signal))
      await someDead()
      await guarded('order.cleanup_failed', () => inTurn('order.cleanup', SWEEP_EVERY_MS, cleanUp))
    }
  }

  async function cleanUp(): Promise<void> {
    if (clock.isHeld()) return
    const now = clock.now()
    await db.write({
      lockKey: 'purchase_order',
      statements: {
        seal: sealOverdue(now, REPLAY_MS),
        purge: purgeOrders(now - KEEP_MS, now),
      },
    })
  }

  async function watch(signal: AbortSignal): Promise<void> {
    let wait = RECONNECT_MIN_MS
    while (!signal.aborted) {
      const startedAt = clock.now()
      try {
        await lightning.watch((paymentHash) => void hint(paymentHash), signal)
      } catch (error) {
        log.warn({ event: 'lightning.stream_ended', reason: String(error) })
      }
      if (clock.now() - startedAt > RECONNECT_MAX_MS) wait = RECONNECT_MIN_MS
      if (!(await pause(wait, signal))) return
      wait = Math.min(wait * 2, RECONNECT_MAX_MS)
    }
  }

  /** Follows a hint of the node about an invoice. A failure is logged; the sweep will find the payment. */
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
    /** Looks up every open order once, then keeps watching until `signal` aborts. */
    start(signal: AbortSignal): void {
      running = Promise.all([sweep(signal), watch(signal)])
    },
    hint,
    /** Resolves when all work has ended. */
    async stopped(): Promise<void> {
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
