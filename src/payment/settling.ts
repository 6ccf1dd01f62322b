/** Settling: learns from the node what became of an order, and settles or ends it in one unit. */
import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { attempt, type Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { type InvoiceState, type Lightning, UnknownInvoice } from '../lightning/lightning.ts'
import type { Ending } from './ending.ts'
import { type PaymentLog, reasonOf } from './log.ts'
import { grantOf, planOf } from './order.ts'
import { type Products, provisioningOf } from './provisioning.ts'
import { type Secrets, seal } from './secrets.ts'
import {
  claimLookup,
  failSettlement,
  killOrder,
  type OrderRow,
  type OrderStore,
  type SettledBy,
  settleOrder,
} from './store.ts'

/** Whoever asks, the node is asked about one order at most this often. */
const LOOKUP_EVERY_MS = 1_000
/** A poll waits this long for the node, then answers from the store. */
const LOOKUP_WAIT_MS = 2_000

/** What stays wrong with an order is told again after this, for as many orders as are remembered. */
const TELL_AGAIN_MS = 60 * 60 * 1000
const MOST_TOLD = 10_000

/** A settled order with its delivery seed, which need not be opened again. */
export type Settled = { order: OrderRow; seed: Uint8Array }

export type Settling = {
  /**
   * Settles and provisions in one unit; with `delivery`, claims the delivery in the same one.
   * Resolves to the order as it is then, or null where it was not this call that settled it.
   */
  settle(order: OrderRow, by: SettledBy, delivery?: 'later' | 'now'): Promise<Settled | null>
  /** Asks the node about an order and acts on the answer. False when it could not be asked. */
  lookUp(order: OrderRow, by: SettledBy): Promise<boolean>
  /** The same for whoever waits for it: no longer than it is worth. */
  lookUpBriefly(order: OrderRow): Promise<void>
  /** The newest state of an order that may have been paid since; asks the node when it is time. */
  refresh(order: OrderRow): Promise<OrderRow>
}

/** Settles the orders of these products. */
export function createSettling(deps: {
  db: Db
  store: OrderStore
  lightning: Lightning
  secrets: Secrets
  clock: Clock
  log: PaymentLog
  products: Products
  end: Ending
}): Settling {
  const { db, store, lightning, secrets, clock, log, products, end } = deps
  /** When it was last told that the node does not know an order's invoice. */
  const told = new LRUCache<string, number>({ max: MOST_TOLD })

  async function settle(
    order: OrderRow,
    by: SettledBy,
    delivery: 'later' | 'now' = 'later',
  ): Promise<Settled | null> {
    const now = clock.now()
    const provisioning = provisioningOf(products, order.product)
    const seed = randomBytes(32)
    const settled = {
      state: 'settled',
      settled_at: now,
      settled_by: by,
      public_id: provisioning.newPublicId(),
      seed: seal(secrets.seedKeys[0], seed, order.order_id),
      expires_at: now + planOf(order).durationSeconds * 1000,
      delivered_at: delivery === 'now' ? now : null,
    } as const
    const settledOrder: OrderRow = { ...order, ...settled }
    const done = await attempt(
      db.write([
        settleOrder(order.order_id, settled),
        ...provisioning.provision(grantOf(settledOrder, seed)),
      ]),
    )
    const facts = { orderId: order.order_id, product: order.product, amountSats: order.amount_sats }
    if ('rows' in done) {
      log.info({ event: 'order.settled', ...facts, by })
      return { order: settledOrder, seed }
    }
    // Statement 0 is the order itself: somebody else settled it, and that is as good.
    if (done.refused === 0) return null
    const failed = await store.one(failSettlement(order.order_id, now, by))
    if (failed) log.error({ event: 'order.paid_unfulfilled', ...facts, by })
    return null
  }

  async function lookUp(order: OrderRow, by: SettledBy): Promise<boolean> {
    if (!order.payment_hash) return true
    const state = await stateAtNode(order.order_id, order.payment_hash)
    if (state === 'settled') await settle(order, by)
    if (state === 'dead' && (await end(killOrder(order.order_id), order))) {
      log.info({ event: 'order.dead', orderId: order.order_id, product: order.product })
    }
    return state !== 'unreachable'
  }

  async function stateAtNode(
    orderId: string,
    paymentHash: string,
  ): Promise<InvoiceState | 'unknown' | 'unreachable'> {
    try {
      return (await lightning.lookupInvoice(paymentHash)).state
    } catch (error) {
      const facts = { orderId, reason: reasonOf(error) }
      if (error instanceof UnknownInvoice) {
        // A restored or a wrong node. The order stays open: the buyer may have paid.
        const toldAt = told.get(orderId)
        const now = clock.now()
        if (toldAt === undefined || now - toldAt >= TELL_AGAIN_MS) {
          told.set(orderId, now)
          log.error({ event: 'order.invoice_unknown', ...facts })
        }
        return 'unknown'
      }
      log.warn({ event: 'lightning.lookup_failed', ...facts })
      return 'unreachable'
    }
  }

  async function lookUpBriefly(order: OrderRow): Promise<void> {
    await withinMs(lookUp(order, 'lookup'), LOOKUP_WAIT_MS)
  }

  async function refresh(order: OrderRow): Promise<OrderRow> {
    if (order.state !== 'pending') return order
    const claim = claimLookup(order.order_id, clock.now(), LOOKUP_EVERY_MS)
    const claimed = await store.one(claim, 'with the next')
    if (claimed) await lookUpBriefly(claimed)
    return (await store.find([order.order_id])) ?? order
  }

  return { settle, lookUp, lookUpBriefly, refresh }
}

async function withinMs(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, timeout])
  clearTimeout(timer)
}
