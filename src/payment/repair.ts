/**
 * What an operator can do with an order that went wrong: look at it, end it if the node has lost its
 * invoice, provision it again if it was paid, or note that it was paid back. Each change is one
 * conditional unit, so it may run beside the service.
 */
import type { Db, Statement } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import { isId } from '../lib/ids.ts'
import type { Lightning } from '../lightning/lightning.ts'
import { decodeInvoice } from '../protocol/bolt11.ts'
import { payeeOf } from '../protocol/bolt11-sign.ts'
import { fingerprints, type Secrets } from '../secrets/secrets.ts'
import { createEnding } from './ending.ts'
import { statusAtNode } from './node-status.ts'
import type { Products } from './provisioning.ts'
import { type SettledFields, settleSale } from './settlement.ts'
import { createOrderStore, type OrderRow, type OrderState } from './store.ts'

/** What may be shown of an order: no key, no seed, no hash of either, and no network of the buyer. */
export type OrderFacts = Pick<
  OrderRow,
  | 'order_id'
  | 'product'
  | 'plan_id'
  | 'amount_sats'
  | 'network'
  | 'payment_hash'
  | 'state'
  | 'created_at'
  | 'quote_expires_at'
  | 'looked_up_at'
  | 'settled_at'
  | 'settled_by'
  | 'public_id'
  | 'expires_at'
  | 'delivered_at'
  | 'sealed_at'
  | 'restored_at'
  | 'unfulfilled_at'
  | 'extends_id'
> & { delivered_by: 'operator' | null }

export type Closing =
  | { kind: 'closed'; node: 'unknown' | 'dead' }
  | { kind: 'order not found' }
  /** Only an order that waits for payment can be closed. */
  | { kind: 'not open'; state: OrderState }
  /** The quote has not ended: the buyer may have paid, and a preimage needs no node. */
  | { kind: 'quote stands'; until: number }
  /** The node knows the invoice: the service settles a paid one, and an open one can still be paid. */
  | { kind: 'node knows it'; state: 'open' | 'settled' }
  /** The node does not know the invoice, and it is not known to be the node that made it. */
  | { kind: 'other node' }

export type Repair =
  /** `publicId`: what was sold, or extended. */
  | { kind: 'repaired'; publicId: string; isExtended: boolean; expiresAt: number }
  | { kind: 'order not found' }
  | { kind: 'not unfulfilled'; state: OrderState }
  /** The configured secrets do not include the one that the order was made under. */
  | { kind: 'other secret' }
  /** It failed again; nothing was changed. */
  | { kind: 'refused'; reason: string }

export type Refund =
  | Extract<Repair, { kind: 'order not found' | 'not unfulfilled' }>
  | { kind: 'refunded' }

/** Whether `text` can name an order: by its payment hash, as the log does, or by its id. */
export const isOrderName = (text: string): boolean => isPaymentHash(text) || isId('order', text)

/** The id of the order of this name, or null. */
export async function orderIdOf(db: Db, name: string): Promise<string | null> {
  const store = createOrderStore(db)
  const order = await (isPaymentHash(name) ? store.findByPaymentHash(name) : store.find([name]))
  return order?.order_id ?? null
}

const isPaymentHash = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

export const FACT_COLUMNS = `order_id, product, plan_id, amount_sats, network, payment_hash, state,
  created_at, quote_expires_at, looked_up_at, settled_at, settled_by, public_id, expires_at, delivered_at,
  sealed_at, delivered_by, restored_at, unfulfilled_at,
  extends_id`

export async function orderFacts(db: Db, orderId: string): Promise<OrderFacts | null> {
  const [facts] = await db.read<OrderFacts>(
    `select ${FACT_COLUMNS} from purchase_order where order_id = $1`,
    orderId,
  )
  return facts ?? null
}

/**
 * Ends an order whose invoice can never be paid, and frees what it reserved.
 * @throws the error of the node when it cannot be reached.
 */
export async function closeOrder(
  deps: { db: Db; lightning: Lightning; clock: Clock; products: Products },
  orderId: string,
): Promise<Closing> {
  const { db, lightning, clock, products } = deps
  const order = await createOrderStore(db).find([orderId])
  if (!order) return { kind: 'order not found' }
  const { state, bolt11, quote_expires_at: standsUntil, payment_hash: paymentHash } = order
  if (state !== 'pending' || bolt11 === null || standsUntil === null || paymentHash === null) {
    return { kind: 'not open', state }
  }
  const now = clock.now()
  if (now < standsUntil) return { kind: 'quote stands', until: standsUntil }
  const status = await statusAtNode(lightning, paymentHash)
  const { state: node } = status
  if (node === 'open' || node === 'settled') return { kind: 'node knows it', state: node }
  if (node === 'unknown' && !(await hasSigned(lightning, bolt11))) return { kind: 'other node' }
  const end = createEnding({ db, products })
  const isFinal = node === 'dead' && status.isFinal
  if (await end(endOverdue(orderId, now, isFinal), order)) return { kind: 'closed', node }
  const current = await orderFacts(db, orderId)
  return current ? { kind: 'not open', state: current.state } : { kind: 'order not found' }
}

/** Provisions an order that is paid and unfulfilled. The buyer's next poll then delivers it. */
export async function repairOrder(
  deps: { db: Db; secrets: Secrets; clock: Clock; products: Products },
  orderId: string,
): Promise<Repair> {
  const { db, secrets, clock } = deps
  const order = await createOrderStore(db).find([orderId])
  if (!order) return { kind: 'order not found' }
  if (order.state !== 'paid_unfulfilled') return { kind: 'not unfulfilled', state: order.state }
  if (!fingerprints(secrets).includes(order.secret_id)) return { kind: 'other secret' }
  const done = await settleSale(deps, order, {
    // The life of the capability begins now: the buyer could not use it before.
    now: clock.now(),
    transition: (fields) => [settleUnfulfilled(orderId, fields)],
  })
  switch (done.kind) {
    case 'settled': {
      const { public_id, expires_at: expiresAt } = done.fields
      const publicId = public_id ?? order.extends_id ?? ''
      return { kind: 'repaired', publicId, isExtended: public_id === null, expiresAt }
    }
    case 'failed':
      return { kind: 'refused', reason: messageOf(done.fault) }
    case 'not applied':
      return notUnfulfilled(db, orderId)
  }
}

/** Notes that the buyer of an unfulfilled order was paid back: the service owes nothing any more. */
export async function noteRefund(
  deps: { db: Db; clock: Clock; products: Products },
  orderId: string,
): Promise<Refund> {
  const { db, clock, products } = deps
  const facts = await orderFacts(db, orderId)
  if (!facts) return { kind: 'order not found' }
  const end = createEnding({ db, products })
  const isNoted = await end(endUnfulfilled(orderId, clock.now()), facts)
  return isNoted ? { kind: 'refunded' } : notUnfulfilled(db, orderId)
}

/** The answer when the order turned out not to be paid and unfulfilled: somebody else was faster. */
async function notUnfulfilled(db: Db, orderId: string) {
  const current = await orderFacts(db, orderId)
  return current
    ? ({ kind: 'not unfulfilled', state: current.state } as const)
    : ({ kind: 'order not found' } as const)
}

/**
 * Whether this node has signed the invoice. Another node would not know the invoice either, while the one
 * that made it may have been paid. A restored node keeps its key.
 */
async function hasSigned(lightning: Lightning, bolt11: string): Promise<boolean> {
  const { nodeId } = await lightning.info()
  return nodeId === payeeOf(decodeInvoice(bolt11))
}

const endOverdue = (orderId: string, now: number, isFinal: boolean): Statement => ({
  text: `update purchase_order set state = 'dead', is_dead_final = $3
    where order_id = $1 and state = 'pending' and quote_expires_at <= $2`,
  values: [orderId, now, isFinal ? 1 : 0],
  expect: 1,
})

/** Seals the order too: it will never be delivered. */
const endUnfulfilled = (orderId: string, now: number): Statement => ({
  text: `update purchase_order set state = 'refunded', sealed_at = $2
    where order_id = $1 and state = 'paid_unfulfilled'`,
  values: [orderId, now],
  expect: 1,
})

const settleUnfulfilled = (orderId: string, settled: SettledFields): Statement => ({
  text: `update purchase_order
    set state = 'settled', settled_at = $2, public_id = $3, seed = $4, expires_at = $5,
      unfulfilled_at = settled_at
    where order_id = $1 and state = 'paid_unfulfilled' returning *`,
  values: [orderId, settled.settled_at, settled.public_id, settled.seed, settled.expires_at],
  expect: 1,
})
