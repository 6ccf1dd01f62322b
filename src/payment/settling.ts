/** Settling: learns from the node what became of an order, and settles or ends it in one unit. */
import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Db, Statement, Unit } from '../db/db.ts'
import { type Clock, type Deletion, NOTHING_IS_OVER } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { type InvoiceStatus, type Lightning, UnknownInvoice } from '../lightning/lightning.ts'
import { type Secrets, seal } from '../secrets/secrets.ts'
import type { Ending } from './ending.ts'
import { endOfLife, grantOf, namedIn, planOf } from './order.ts'
import { type Products, provisioningOf } from './provisioning.ts'
import {
  claimLookup,
  confirmDead,
  failSettlement,
  killOrder,
  mayHaveNews,
  type OrderRow,
  type OrderStore,
  type SettledBy,
  settleOrder,
  written,
} from './store.ts'

/** Whoever asks, the node is asked about one order at most this often. */
const LOOKUP_EVERY_MS = 1_000
/** A poll waits this long for the node, then answers from the store. */
const LOOKUP_WAIT_MS = 2_000

/** Polls of dead orders cost the buyer nothing, so that they may take no more of the node than this. */
const DEAD_LOOKUPS_AT_ONCE = 8

/** What stays wrong with an order is told again after this, for as many orders as are remembered. */
const TELL_AGAIN_MS = 60 * 60 * 1000
const MOST_TOLD = 10_000
/** Orders that ended while deletion was held back; what is forgotten of them is asked for again. */
const MOST_KEPT = 10_000

/** A settled order with its delivery seed, which need not be opened again. */
export type Settled = { order: OrderRow; seed: Uint8Array }

export type Settling = {
  /**
   * Settles and provisions in one unit; with `delivery`, claims the delivery in the same one.
   * Resolves to the order as it is then, or null where it was not this call that settled it.
   */
  settle(
    order: OrderRow,
    by: SettledBy,
    delivery?: 'later' | 'now',
    /** What may have been let go of because the order died, and is there again. */
    restored?: Statement[],
  ): Promise<Settled | null>
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
  deletion: Pick<Deletion, 'now'>
  log: Log
  products: Products
  end: Ending
}): Settling {
  const { db, store, lightning, secrets, clock, deletion, log, products, end } = deps
  /** When it was last told that the node does not know an order's invoice. */
  const told = new LRUCache<string, number>({ max: MOST_TOLD })
  /** Orders that are over by a clock that is doubted: answered so, and kept with their bytes. */
  const keptDead = new LRUCache<string, true>({ max: MOST_KEPT })

  /** Look-ups of dead orders for those who ask. */
  let deadUnderWay = 0

  async function settle(
    order: OrderRow,
    by: SettledBy,
    delivery: 'later' | 'now' = 'later',
    restored: Statement[] = [],
  ): Promise<Settled | null> {
    const now = clock.now()
    const facts = { ...namedIn(order), amountSats: order.amount_sats }
    const unit = settlingUnit(order, { by, now, delivery, restored })
    const done =
      'fault' in unit
        ? unit
        : await written(db, { lockKey: order.order_id, statements: unit.statements })
    if ('settled' in unit && 'rows' in done) {
      log.info({ event: 'order.settled', ...facts, by })
      return unit.settled
    }
    // Somebody else settled it, and that is as good.
    if ('refused' in done && done.refused === 'order') return null
    const reason = 'fault' in done ? messageOf(done.fault) : 'the product refused'
    const failed = await store.one(order.order_id, failSettlement(order.order_id, now, by))
    if (failed) log.error({ event: 'order.paid_unfulfilled', ...facts, by, reason })
    return null
  }

  /** What settles the order in one unit; or why nothing ever will, which is the order's own fault. */
  function settlingUnit(
    order: OrderRow,
    {
      by,
      now,
      delivery,
      restored,
    }: { by: SettledBy; now: number; delivery: 'later' | 'now'; restored: Statement[] },
  ):
    | { statements: Unit<'order' | 'restored' | 'provision'>['statements']; settled: Settled }
    | { fault: unknown } {
    try {
      const provisioning = provisioningOf(products, order.product)
      const seed = randomBytes(32)
      const settled = {
        state: 'settled',
        settled_at: now,
        settled_by: by,
        public_id: provisioning.newPublicId(),
        seed: seal(secrets.seedKeys[0], seed, order.order_id),
        expires_at: endOfLife(planOf(order), now),
        delivered_at: delivery === 'now' ? now : null,
      } as const
      const settledOrder: OrderRow = { ...order, ...settled }
      const statements = {
        // What comes back with its proof may have been all that an order that is owed has lacked.
        order: settleOrder(order.order_id, settled, restored.length > 0),
        restored,
        provision: provisioning.provision(grantOf(settledOrder, seed)),
      }
      return { statements, settled: { order: settledOrder, seed } }
    } catch (fault) {
      return { fault }
    }
  }

  async function lookUp(order: OrderRow, by: SettledBy): Promise<boolean> {
    if (!order.payment_hash) return true
    const status = await statusAtNode(order, order.payment_hash)
    if (status.state === 'settled') await settle(order, by)
    if (status.state === 'dead') await bury(order, status.isFinal)
    else keptDead.delete(order.order_id)
    return status.state !== 'unreachable'
  }

  /**
   * Ends an open order. Its end lets go of what it reserved, which is gone then: not by a clock that is
   * doubted. Of a dead one it notes that its end is no guess any more.
   */
  async function bury(order: OrderRow, isFinal: boolean): Promise<void> {
    if (order.state === 'dead') {
      if (isFinal) await store.one(order.order_id, confirmDead(order.order_id), 'deferred')
    } else if ((await deletion.now()) === NOTHING_IS_OVER) {
      keptDead.set(order.order_id, true)
    } else if (await end(killOrder(order.order_id, isFinal), order)) {
      log.info({ event: 'order.dead', ...namedIn(order), isFinal })
    }
  }

  async function statusAtNode(
    { state }: OrderRow,
    paymentHash: string,
  ): Promise<InvoiceStatus | { state: 'unknown' | 'unreachable' }> {
    try {
      return await lightning.lookupInvoice(paymentHash)
    } catch (error) {
      const facts = { paymentHash, reason: messageOf(error) }
      if (error instanceof UnknownInvoice) {
        // What a dead order's node has forgotten since is no news.
        if (state === 'dead') return { state: 'unknown' }
        // A restored or a wrong node. The order stays open: the buyer may have paid.
        const toldAt = told.get(paymentHash)
        const now = clock.now()
        if (toldAt === undefined || now - toldAt >= TELL_AGAIN_MS) {
          told.set(paymentHash, now)
          log.error({ event: 'order.invoice_unknown', ...facts })
        }
        return { state: 'unknown' }
      }
      log.warn({ event: 'lightning.lookup_failed', ...facts })
      return { state: 'unreachable' }
    }
  }

  async function lookUpBriefly(order: OrderRow): Promise<void> {
    await withinMs(lookUp(order, 'lookup'), LOOKUP_WAIT_MS)
  }

  async function refresh(order: OrderRow): Promise<OrderRow> {
    if (!mayHaveNews(order)) return order
    const isDead = order.state === 'dead'
    if (isDead && deadUnderWay >= DEAD_LOOKUPS_AT_ONCE) return order
    if (isDead) deadUnderWay++
    const asked = claimAndLookUp(order).finally(() => {
      if (isDead) deadUnderWay--
    })
    await withinMs(asked, LOOKUP_WAIT_MS)
    const current = (await store.find([order.order_id])) ?? order
    const isKeptDead = current.state === 'pending' && keptDead.has(order.order_id)
    return isKeptDead ? { ...current, state: 'dead' } : current
  }

  async function claimAndLookUp({ order_id: orderId }: OrderRow): Promise<void> {
    const claim = claimLookup(orderId, clock.now(), LOOKUP_EVERY_MS)
    const claimed = await store.one(orderId, claim, 'deferred')
    if (claimed) await lookUp(claimed, 'lookup')
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
