/**
 * What an operator does to orders, beside the running service: delivers what is owed, notes what was paid back, and
 * restores what the store has lost. Each change is one conditional unit. What cannot be done throws a `Refusal`.
 */
import { randomBytes } from 'node:crypto'
import { attempt, type Db, insertRow, type Statement } from '../db/db.ts'
import { type Clock, rfc3339 } from '../lib/clock.ts'
import { messageOf } from '../lib/errors.ts'
import { newId } from '../lib/ids.ts'
import { type Json, jcs } from '../lib/jcs.ts'
import type { PlanId, Product } from '../lib/product-names.ts'
import type { Lightning } from '../lightning/lightning.ts'
import { provesPayment } from '../protocol/preimage.ts'
import { fingerprints, type Secrets, unseal } from '../secrets/secrets.ts'
import { settledPayment } from './orders.ts'
import { type PlanTerms, type Products, provisioningOf } from './provisioning.ts'
import { findRefund, findSale, recordRefund } from './sales.ts'
import { settleSale } from './settlement.ts'
import { statusAtNode } from './settling.ts'
import type { OrderRef } from './showing.ts'
import { insertName, NEW_ORDER, type OrderRow, type OrderState, type SettledBy } from './store.ts'
import { payBack } from './story.ts'
import { findTombstone } from './tombstones.ts'

/** Nothing was changed. The message is a sentence for the operator that says why, and what else to do. */
export class Refusal extends Error {
  override name = 'Refusal'
  /** `unknown`: the store has no such order. `secret`: the service has another secret. */
  readonly kind: 'unknown' | 'secret' | 'state'
  constructor(message: string, kind: 'unknown' | 'secret' | 'state' = 'state') {
    super(message)
    this.kind = kind
  }
}

type Deps = { db: Db; secrets: Secrets; clock: Clock; products: Products }

/** Rows are deleted 30 days after their end; payment hashes outlive them. */
export const unknownOrder = ({ by }: OrderRef): Refusal => new Refusal(UNKNOWN[by], 'unknown')

const UNKNOWN: Record<OrderRef['by'], string> = {
  payment_hash:
    'This store has and had no order with that payment hash, or the order was never paid and is long gone. If your node says that the invoice is paid, you owe it: mayfly order restore --help',
  order_id:
    'There is no order with that id in this store. Orders are deleted 30 days after their end: ask the buyer for the invoice or its payment hash.',
  public_id:
    'No order in this store bought that. Orders are deleted 30 days after their end: ask the buyer for the invoice or its payment hash.',
}

async function rowOf(db: Db, { by, value }: OrderRef): Promise<OrderRow | null> {
  const [row] = await db.read<OrderRow>(`select * from purchase_order where ${by} = $1`, value)
  return row ?? null
}

// Delivering

/** What an order that was owed has bought. `publicId`: what was sold, or extended. */
export type Provisioned = {
  order: string
  publicId: string
  isExtended: boolean
  /** Restored, maybe under an id that its buyer does not know. Otherwise the buyer's next poll collects it. */
  isRestored: boolean
  expiresAt: number
}

/** Provisions an order that is paid and unfulfilled. Its life begins now, since the buyer could not use it before. */
export async function deliverOrder(deps: Deps, ref: OrderRef): Promise<Provisioned> {
  const order = await deliverable(deps, ref)
  const provisioned = await provisionOwed(deps, order)
  if (provisioned) return provisioned
  // It was provisioned before, or somebody else was faster.
  const name = (await deliverable(deps, ref)).payment_hash
  throw new Refusal(
    `${name} waits for its buyer. A buyer who cannot prove the payment: mayfly order deliver ${name} --print`,
  )
}

/**
 * Hands a paid order out to the operator, for a buyer who cannot prove the payment. It happens once, like any
 * delivery, and seals the order. An order that is unfulfilled is provisioned first.
 * @returns the answer that the buyer would have got, which has no other copy. `extendedId` is what the order has
 *   extended: then the answer has no token.
 */
export async function handOutOrder(
  deps: Deps,
  ref: OrderRef,
): Promise<{ order: string; body: string; extendedId: string | null }> {
  const { db, secrets, clock, products } = deps
  await provisionOwed(deps, await deliverable(deps, ref))
  const order = await deliverable(deps, ref)
  const { order_id: orderId, public_id: publicId, extends_id: extendsId } = order
  if (!order.seed) throw wasDelivered(order)
  const opened = unseal(secrets.seedKeys, order.seed, orderId)
  if (!opened) throw otherSecret(order)
  const body = settledPayment(order, opened.plain, products)
  const statements = { order: handOut(orderId, clock.now()) }
  const done = await attempt(db.write({ lockKey: orderId, statements }))
  if ('refused' in done) throw wasDelivered(await deliverable(deps, ref))
  return { order: order.payment_hash, body, extendedId: publicId === null ? extendsId : null }
}

/** The order, if it is paid and has something to deliver. @throws Refusal */
async function deliverable({ db, clock }: Deps, ref: OrderRef): Promise<OrderRow> {
  const order = await rowOf(db, ref)
  if (!order) {
    if (ref.by !== 'payment_hash' || !(await findTombstone(db, ref.value))) throw unknownOrder(ref)
    throw new Refusal(
      `${ref.value} was an order of this store, and was deleted after its end. It is never delivered twice.`,
    )
  }
  const { state, delivered_at: deliveredAt, expires_at: expiresAt, sealed_at: sealedAt } = order
  if (state === 'paid_unfulfilled') return order
  const name = order.payment_hash
  if (state !== 'settled') throw new Refusal(`${name} is ${state}: there is nothing to deliver.`)
  if (deliveredAt === null && expiresAt !== null && expiresAt <= clock.now()) {
    throw new Refusal(
      `The capability of ${name} ended at ${rfc3339(expiresAt)} and was never collected. If that was your fault, ${payBack(name, ' --settled')}`,
    )
  }
  if (deliveredAt !== null || sealedAt !== null) throw wasDelivered(order)
  return order
}

function wasDelivered(order: OrderRow): Refusal {
  const at = order.delivered_at ?? order.sealed_at
  const when = at === null ? '' : ` at ${rfc3339(at)}`
  const name = order.payment_hash
  return new Refusal(
    `${name} was delivered${when}, and is never delivered twice. If the buyer did not receive it, ${payBack(name, ' --settled')}`,
  )
}

const otherSecret = (order: OrderRow): Refusal =>
  new Refusal(
    `${order.payment_hash} was made under another secret. Set MAYFLY_SECRET to the secret of the service.`,
    'secret',
  )

/** Null if the order is provisioned already, by now at the latest. */
async function provisionOwed(deps: Deps, order: OrderRow): Promise<Provisioned | null> {
  if (order.state !== 'paid_unfulfilled') return null
  if (!fingerprints(deps.secrets).includes(order.secret_id)) throw otherSecret(order)
  const { settled_by: by, payment_hash: name } = order
  const done = await settleSale(deps, order, {
    now: deps.clock.now(),
    by,
    deliveredAt: null,
    isOwedToo: true,
    restored: [],
  })
  switch (done.kind) {
    case 'settled': {
      const { public_id, expires_at: expiresAt } = done.order
      const publicId = public_id ?? order.extends_id ?? ''
      const isRestored = order.restored_at !== null
      return { order: name, publicId, isExtended: public_id === null, isRestored, expiresAt }
    }
    case 'not applied':
      return null
    case 'failed':
      throw new Refusal(
        `${name} cannot be provisioned: ${messageOf(done.fault)}. You still owe it. Mend the cause, or ${payBack(name)}`,
      )
  }
}

/** Whether contested or not: the operator judges who the buyer is. */
const handOut = (orderId: string, now: number): Statement => ({
  text: `update purchase_order
    set delivered_at = $2, delivered_by = 'operator', sealed_at = $2, seed = null
    where order_id = $1 and state = 'settled' and delivered_at is null and sealed_at is null
      and expires_at > $2`,
  values: [orderId, now],
  expect: 1,
})

// Refunding

/** `publicId` still works, if it was sold and has not ended. */
export type Refunded = { amountSats: number; publicId: string | null }

/**
 * Notes that the operator has paid back an order that was paid. It is never delivered from then on. Of a deleted order
 * the sale is enough.
 * @param isSettled whether the operator has seen that it was provisioned, so that its buyer has what it bought or can
 *   collect it. That works to its end, which is for a takedown. An order that was settled since then is not refunded.
 */
export async function refundOrder(
  { db, clock, products }: Pick<Deps, 'db' | 'clock' | 'products'>,
  ref: OrderRef,
  { reason, isSettled = false }: { reason: string; isSettled?: boolean },
): Promise<Refunded> {
  const refundedAt = clock.now()
  const order = await rowOf(db, ref)
  if (!order) return refundSale(db, ref, { reason, refundedAt })
  const { order_id: orderId, state, payment_hash: paymentHash, amount_sats: amountSats } = order
  if (state === 'refunded') throw await wasRefunded(db, ref, paymentHash)
  const isOwed = state === 'paid_unfulfilled'
  if (!isOwed && state !== 'settled') {
    throw new Refusal(
      `${ref.value} is ${state}: this store knows of no payment. Nothing was changed.`,
    )
  }
  if (!isOwed && !isSettled) {
    const has = order.delivered_at === null ? 'can collect what it bought' : 'has what it bought'
    throw new Refusal(
      `${ref.value} is settled: its buyer ${has}. Nothing was changed. To refund it all the same, add --settled.`,
    )
  }
  const done = await attempt(
    db.write({
      lockKey: orderId,
      statements: {
        order: endRefunded(order, refundedAt),
        refund: recordRefund({ paymentHash, amountSats, reason, refundedAt }),
        // What was sold has nothing reserved any more.
        release: isOwed ? (products[order.product]?.release?.(orderId) ?? []) : [],
      },
    }),
  )
  if ('rows' in done) return { amountSats, publicId: order.public_id }
  const current = await rowOf(db, ref)
  // It was deleted since, because it was over.
  if (current === null) {
    return refundSale(db, { by: 'payment_hash', value: paymentHash }, { reason, refundedAt })
  }
  if (current.state === 'refunded' || done.refused === 'refund') {
    throw await wasRefunded(db, ref, paymentHash)
  }
  throw new Refusal(
    `${ref.value} is ${current.state} by now, and was not refunded: mayfly order show ${ref.value}`,
  )
}

async function refundSale(
  db: Db,
  ref: OrderRef,
  refund: { reason: string; refundedAt: number },
): Promise<Refunded> {
  const { by, value: paymentHash } = ref
  const sale = by === 'payment_hash' ? await findSale(db, paymentHash) : null
  if (!sale) {
    throw new Refusal(
      `${UNKNOWN[by]} To record the refund of an order that this store has lost, add --product and --plan.`,
      'unknown',
    )
  }
  const amountSats = sale.amount_sats
  const statements = { refund: recordRefund({ ...refund, paymentHash, amountSats }) }
  const done = await attempt(db.write({ lockKey: paymentHash, statements }))
  if ('refused' in done) throw await wasRefunded(db, ref, paymentHash)
  return { amountSats, publicId: null }
}

async function wasRefunded(db: Db, ref: OrderRef, paymentHash: string): Promise<Refusal> {
  const refund = await findRefund(db, paymentHash)
  const when = refund === null ? '' : ` at ${rfc3339(refund.refunded_at)}`
  return new Refusal(`${ref.value} was recorded as refunded${when}.`)
}

/** Refused if it was provisioned, delivered or refunded since it was read. */
const endRefunded = (order: OrderRow, now: number): Statement => ({
  text: `update purchase_order
    set state = 'refunded', seed = null, sealed_at = coalesce(sealed_at, $2)
    where order_id = $1 and state = $3 and coalesce(delivered_at, 0) = $4`,
  values: [order.order_id, now, order.state, order.delivered_at ?? 0],
  expect: 1,
})

// Restoring what the store has lost: it was opened and paid after the backup that the store was restored from

/** The operator's decisions about an order that the store has lost. */
export type Lost = {
  /** 64 lower-case hex digits. */
  paymentHash: string
  product: Product
  planId: PlanId
  /** The plan that the buyer gets: as it is sold now. */
  plan: PlanTerms & Record<string, Json>
  /** The id that the buyer has, or null: then only the invoice or a credential finds the order. */
  orderId: string | null
  /** Proves the payment if the node has lost the invoice too; otherwise null. */
  preimage: string | null
}

type LostDeps = Deps & { lightning: Lightning }

/**
 * For a store that was restored from a copy: whether a quote was shown to a second client since then is lost, so every
 * order that may have been paid since takes a proof of the payment.
 */
export const contestRestored: Statement = {
  text: `update purchase_order set contested = 1
    where contested = 0 and extends_id is null and state in ('pending', 'dead')`,
  values: [],
}

/**
 * Provisions a lost order again. The buyer's proof finds it by its payment hash; only a credential vouches for the key
 * and the body of the purchase.
 */
export async function restoreOrder(deps: LostDeps, lost: Lost): Promise<Provisioned> {
  const { paymentHash, product } = lost
  await refuseKnown(deps.db, lost)
  // A product that reserves at quote time stores the buyer's bytes, and there is no other copy of them.
  if (provisioningOf(deps.products, product).release) {
    throw new Refusal(
      `A ${product} cannot be restored: the content that the buyer sent is lost with the order. Pay it back, and record that: mayfly order refund ${paymentHash} --product ${product} --plan <plan> --reason <text>`,
    )
  }
  return deliverOrder(deps, await putBack(deps, lost))
}

/** Notes that the buyer of a lost order was paid back: its credential then raises no alarm. */
export async function refundLost(deps: LostDeps, lost: Lost, reason: string): Promise<Refunded> {
  await refuseKnown(deps.db, lost)
  return refundOrder(deps, await putBack(deps, lost), { reason })
}

/**
 * Puts a lost order into the store as one that is owed. What follows is as with any other. Its key is known by the
 * order's id alone, if the buyer told that. What was to be extended is not known: the buyer gets the plan anew. It is
 * contested from the start, because nobody knows who opened it.
 * @throws Refusal
 */
async function putBack(deps: LostDeps, lost: Lost): Promise<OrderRef> {
  const { db, lightning, secrets, clock } = deps
  const { paymentHash, product, planId, plan } = lost
  const settledBy = await paymentOf(deps, lost)
  const { network } = await lightning.info()
  const now = clock.now()
  const orderId = lost.orderId ?? newId('order')
  const order: OrderRow = {
    ...NEW_ORDER,
    order_id: orderId,
    secret_id: fingerprints(secrets)[0],
    request_hash: randomBytes(32),
    product,
    plan_id: planId,
    plan: jcs(plan),
    // The buyer's are lost.
    terms: 'null',
    amount_sats: plan.priceSats,
    client_network: '',
    opened_by: '',
    contested: 1,
    state: 'paid_unfulfilled',
    created_at: now,
    network,
    bolt11: 'unknown',
    payment_hash: paymentHash,
    quote_expires_at: now,
    settled_at: now,
    settled_by: settledBy,
  }
  const statements = [
    insertName(orderId),
    insertRow('purchase_order', order, 'on conflict do nothing'),
    markRestored(paymentHash, now),
  ]
  const done = await attempt(db.write({ lockKey: orderId, statements: { order: statements } }))
  if ('rows' in done) return { by: 'payment_hash', value: paymentHash }
  // Somebody else was faster, or has the id.
  await refuseKnown(db, lost)
  throw inTheStore(lost, 'paid_unfulfilled')
}

/** Refused if the order was delivered or expired: its tombstone says so. */
const markRestored = (paymentHash: string, now: number): Statement => ({
  text: `update purchase_order set restored_at = $2
    where payment_hash = $1 and not exists (
      select 1 from order_tombstone where payment_hash = $1 and ended <> 'dead')`,
  values: [paymentHash, now],
  expect: 1,
})

const inTheStore = ({ paymentHash }: Lost, state: OrderState): Refusal =>
  new Refusal(
    `${paymentHash}, or the id of --order, is in this store and is ${state}: mayfly order show ${paymentHash}`,
  )

/** @throws Refusal if the order is or was in the store. The insert checks this again. */
async function refuseKnown(db: Db, lost: Lost): Promise<void> {
  const { paymentHash, orderId } = lost
  const [here] = await db.read<{ state: OrderState }>(
    'select state from purchase_order where payment_hash = $1 or order_id = $2',
    paymentHash,
    orderId ?? '',
  )
  if (here) throw inTheStore(lost, here.state)
  const past = await findTombstone(db, paymentHash)
  if (past === null || past.ended === 'dead') return
  throw new Refusal(
    `${paymentHash} was an order of this store. It was delivered or expired long ago, and is never delivered twice.`,
  )
}

/** How the payment was seen. @throws Refusal if it was not paid. */
async function paymentOf(
  { lightning }: LostDeps,
  { paymentHash, preimage }: Lost,
): Promise<SettledBy> {
  if (preimage !== null) {
    if (provesPayment(preimage, paymentHash)) return 'preimage'
    throw new Refusal(`That is not the preimage of ${paymentHash}. Nothing was changed.`)
  }
  const { state } = await statusAtNode(lightning, paymentHash)
  if (state === 'settled') return 'lookup'
  throw new Refusal(
    state === 'unknown'
      ? `The node does not know the invoice of ${paymentHash}. If the node has lost it, and the log named this hash as proven, give the buyer’s preimage: --preimage-file.`
      : `The node says that ${paymentHash} is ${state} and not paid. Nothing was changed.`,
  )
}
