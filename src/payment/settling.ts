/** Settling: asks the node about the payment of an order, and settles or ends the order in one unit. */
import { LRUCache } from 'lru-cache'
import { attempt, type Db, type Statement, StoreAway } from '../db/db.ts'
import type { Clock, HeldClock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { type InvoiceStatus, type Lightning, UnknownInvoice } from '../lightning/lightning.ts'
import type { Secrets } from '../secrets/secrets.ts'
import { namedIn } from './order.ts'
import type { Products } from './provisioning.ts'
import { settleSale } from './settlement.ts'
import {
  claimLookup,
  confirmDead,
  failSettlement,
  killOrder,
  mayHaveNews,
  type OrderRow,
  type OrderStore,
  type SettledBy,
} from './store.ts'

/** The node is asked about one order at most this often, however many clients poll it. */
const LOOKUP_EVERY_MS = 1_000
/** A poll waits this long for the node, then answers from the store. */
const LOOKUP_WAIT_MS = 2_000

/** Polls of dead orders cost a client nothing, so no more of them than this may ask the node at once. */
const DEAD_LOOKUPS_AT_ONCE = 8

/**
 * An order whose invoice the node does not know stays open for this long after its quote: until then somebody mends the
 * node or its address. Then it dies by guess, like any that the node has forgotten: a preimage, or a node that knows
 * the invoice again, still settles it.
 */
const GIVE_UP_MS = 7 * 24 * 60 * 60 * 1000

const isGivenUp = ({ quote_expires_at: end }: OrderRow, now: number): boolean =>
  end + GIVE_UP_MS <= now

/** A settled order with its plain delivery seed. */
export type Settled = { order: OrderRow; seed: Uint8Array }

/** Settles the orders of these products. */
export function createSettling(deps: {
  db: Db
  store: OrderStore
  lightning: Lightning
  secrets: Secrets
  clock: HeldClock
  log: Log
  products: Products
  /** Tells those who follow a capability that it was extended. */
  onExtended?: (publicId: string) => void
}) {
  const { onExtended, db, store, lightning, secrets, clock, log, products } = deps
  /** Alarms about invoices that the node does not know. */
  const isAlarmDue = createAlarms(clock)
  /** Look-ups of dead orders that polls wait for. */
  let deadUnderWay = 0

  /** Settles and provisions in one unit. Null if this call did not settle the order. */
  async function settle(
    order: OrderRow,
    {
      by,
      delivery,
      restored,
    }: {
      by: SettledBy
      /** Whether the same unit claims the delivery. */
      delivery: 'later' | 'now'
      /** The statements that reserve again what the product released when the order died. */
      restored: Statement[]
    },
  ): Promise<Settled | null> {
    if (clock.hasGoneBack()) throw new StoreAway('the clock went back, so nothing is settled yet')
    const now = clock.now()
    const deliveredAt = delivery === 'now' ? now : null
    const facts = { ...namedIn(order), amountSats: order.amount_sats }
    // The bytes that come with the proof may be all that an unfulfilled order lacked.
    const isOwedToo = restored.length > 0
    const step = { now, by, deliveredAt, isOwedToo, restored }
    const done = await settleSale({ db, secrets, products }, order, step)
    switch (done.kind) {
      case 'settled': {
        const { extends_id: extendsId, public_id: publicId } = done.order
        const isExtension = extendsId !== null && publicId === null
        const renewal = isExtension ? 'extended' : 'replaced'
        log.info({
          event: 'order.settled',
          ...facts,
          by,
          ...(extendsId === null ? {} : { renewal }),
        })
        if (isExtension) onExtended?.(extendsId)
        return done
      }
      case 'not applied':
        return null
      case 'failed': {
        const failed = await store.one(order.order_id, failSettlement(order.order_id, now, by))
        const reason = messageOf(done.fault)
        if (failed) log.error({ event: 'order.paid_unfulfilled', ...facts, by, reason })
        return null
      }
    }
  }

  /**
   * Settles an order whose payment is proven, if it still waits for one, and delivers nothing. `restored` is
   * as in `settle`. Resolves to the order as it is then.
   */
  async function prove(order: OrderRow, restored = (): Statement[] => []): Promise<OrderRow> {
    if (order.state !== 'pending' && order.state !== 'dead') return order
    await settle(order, { by: 'preimage', delivery: 'later', restored: restored() })
    return (await store.find(order.order_id)) ?? order
  }

  /** Looks up an order at the node, and settles or ends it. False if the node was unreachable. */
  async function lookUp(order: OrderRow, by: SettledBy): Promise<boolean> {
    const status = await statusOf(order, order.payment_hash)
    if (status.state === 'settled') await settle(order, { by, delivery: 'later', restored: [] })
    if (status.state === 'dead') await markDead(order, status.isFinal)
    if (status.state === 'unknown' && isGivenUp(order, clock.now())) await markDead(order, false)
    return status.state !== 'unreachable'
  }

  /**
   * Ends an open order, which deletes what it reserved. While the clock is held, it stays open. For an order that is
   * dead already, notes that the node has confirmed it.
   */
  async function markDead(order: OrderRow, isFinal: boolean): Promise<void> {
    if (order.state === 'dead') {
      if (isFinal) await store.one(order.order_id, confirmDead(order.order_id), 'deferred')
    } else if (!clock.isHeld()) {
      const { order_id: lockKey, product } = order
      const release = products[product]?.release?.(lockKey) ?? []
      const statements = { order: killOrder(lockKey, isFinal), release }
      const ended = await attempt(db.write({ lockKey, statements }))
      if ('rows' in ended) log.info({ event: 'order.dead', ...namedIn(order), isFinal })
    }
  }

  async function statusOf(
    { state }: OrderRow,
    paymentHash: string,
  ): Promise<NodeStatus | { state: 'unreachable' }> {
    try {
      const status = await statusAtNode(lightning, paymentHash)
      // The node was restored, or is the wrong one. The order stays open: the buyer may have paid. A node
      // may forget the invoice of a dead order.
      if (status.state === 'unknown' && state !== 'dead' && isAlarmDue(paymentHash)) {
        log.error({ event: 'order.invoice_unknown', paymentHash, reason: status.reason })
      }
      return status
    } catch (error) {
      log.warn({ event: 'lightning.lookup_failed', paymentHash, reason: messageOf(error) })
      return { state: 'unreachable' }
    }
  }

  /** The newest state of an order that may have been paid since; asks the node when it is time. */
  async function refresh(order: OrderRow): Promise<OrderRow> {
    if (!mayHaveNews(order)) return order
    const isDead = order.state === 'dead'
    if (isDead && deadUnderWay >= DEAD_LOOKUPS_AT_ONCE) return order
    if (isDead) deadUnderWay++
    const work = claimAndLookUp(order).finally(() => {
      if (isDead) deadUnderWay--
    })
    await withinMs(work, LOOKUP_WAIT_MS)
    return (await store.find(order.order_id)) ?? order
  }

  async function claimAndLookUp({ order_id: orderId }: OrderRow): Promise<void> {
    const now = clock.now()
    const claim = claimLookup(orderId, now, now - LOOKUP_EVERY_MS)
    const claimed = await store.one(orderId, claim, 'deferred')
    if (claimed) await lookUp(claimed, 'lookup')
  }

  return { settle, prove, lookUp, refresh }
}

async function withinMs(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([work, timeout])
  clearTimeout(timer)
}

/** What the node says about an order's invoice. */
type NodeStatus = InvoiceStatus | { state: 'unknown'; reason: string }

/**
 * The status of an invoice; `unknown` if the node does not know it.
 * @throws the error of the node when it cannot be reached.
 */
export async function statusAtNode(lightning: Lightning, paymentHash: string): Promise<NodeStatus> {
  try {
    return await lightning.lookupInvoice(paymentHash)
  } catch (error) {
    if (error instanceof UnknownInvoice) return { state: 'unknown', reason: error.message }
    throw error
  }
}

/** An alarm about a lasting fault is logged this often, however often a request runs into it. */
const REPEAT_MS = 60 * 60 * 1000
/** An alarm that was evicted is logged again too early, which does no harm. */
const MAX_ALARMS = 10_000

/** Returns whether to log the alarm about a payment hash now. If so, it counts as logged. */
export function createAlarms(clock: Clock): (paymentHash: string) => boolean {
  const loggedAt = new LRUCache<string, number>({
    maxSize: MAX_ALARMS,
    sizeCalculation: () => 1,
  })
  return (paymentHash) => {
    const now = clock.now()
    const last = loggedAt.get(paymentHash)
    if (last !== undefined && now - last < REPEAT_MS) return false
    loggedAt.set(paymentHash, now)
    return true
  }
}
