/**
 * Restores an order that this store has lost: it was opened and paid after the backup that the store was
 * restored from. Only its payment hash is known.
 */
import { randomBytes } from 'node:crypto'
import { attempt, type Db, type Statement } from '../db/db.ts'
import { newId } from '../lib/ids.ts'
import { type Json, jcs } from '../lib/jcs.ts'
import type { PlanId, Product } from '../lib/product-names.ts'
import type { Lightning } from '../lightning/lightning.ts'
import { provesPayment } from '../protocol/preimage.ts'
import { fingerprints } from '../secrets/secrets.ts'
import { statusAtNode } from './node-status.ts'
import type { DeliveryDeps } from './operator.ts'
import { type PlanTerms, provisioningOf } from './provisioning.ts'
import { recordRefund } from './sales.ts'
import { settleSale } from './settlement.ts'
import { insertName, type OrderState } from './store.ts'

/** The operator's decisions about an order that the store has lost. */
export type Lost = {
  /** 64 lower-case hex digits. */
  paymentHash: string
  product: Product
  planId: PlanId
  /** The plan that the buyer gets: as it is sold now. */
  plan: PlanTerms & Record<string, Json>
  memo: string
  /** The id that the buyer has, or null: then only a credential finds the order. */
  orderId: string | null
  /** Proves the payment if the node has lost the invoice too; otherwise null. */
  preimage: string | null
}

/** Why a lost order can be neither restored nor refunded. */
type Unrestored =
  /** The order, or one with the given id, is in the store: nothing is lost. */
  | { kind: 'in the store'; state: OrderState }
  /** It was in the store, was delivered or expired, and was deleted in time. */
  | { kind: 'of the past' }
  | { kind: 'not paid'; node: 'open' | 'dead' | 'unknown' }
  | { kind: 'wrong preimage' }

export type Restoring =
  | { kind: 'restored'; publicId: string; expiresAt: number }
  /** It sold the buyer's own bytes, which are lost with the order. */
  | { kind: 'bytes are lost' }
  | Unrestored

export type RefundingLost = { kind: 'refunded'; amountSats: number } | Unrestored

type LostDeps = DeliveryDeps & { lightning: Lightning }

/**
 * For a store that was restored from a copy: whether a quote was shown to a second client since then is lost, so every
 * order that may have been paid since takes a proof of the payment.
 */
export const contestRestored: Statement = {
  text: `update purchase_order set contested = 1
    where contested = 0 and extends_id is null and state in ('opening', 'pending', 'dead')`,
  values: [],
}

/**
 * Provisions a lost order again. The new row has its payment hash, so that the buyer's credential finds it; only the
 * credential vouches for the key and the body of the purchase.
 */
export async function restoreOrder(deps: LostDeps, lost: Lost): Promise<Restoring> {
  const { db, products } = deps
  const reason = await whyUnrestored(db, lost)
  if (reason) return reason
  // A product that reserves at quote time stores the buyer's bytes, and there is no other copy of them.
  if (provisioningOf(products, lost.product).release) return { kind: 'bytes are lost' }
  const paid = await paymentOf(deps, lost)
  if (paid.kind !== 'paid') return paid
  const origin = await originOf(deps, lost)
  const { orderId: order_id, now } = origin
  const { product, planId: plan_id } = lost
  const plan = jcs(lost.plan)
  // What was to be extended is not known: the buyer gets the plan anew.
  const sale = { order_id, product, plan_id, plan, terms: NO_TERMS, extends_id: null }
  const done = await settleSale(deps, sale, {
    now,
    transition: ({ seed, public_id: publicId, expires_at: expiresAt }) => {
      const settled = { state: 'settled', sealedAt: null, seed, publicId, expiresAt } as const
      return insertRestored(lost, { ...origin, ...settled, by: paid.by })
    },
  })
  switch (done.kind) {
    case 'settled': {
      const { public_id, expires_at: expiresAt } = done.fields
      return { kind: 'restored', publicId: public_id ?? '', expiresAt }
    }
    case 'failed':
      throw done.fault
    case 'not applied':
      return inTheWay(db, lost)
  }
}

/** Notes that the buyer of a lost order was paid back: its credential then raises no alarm. */
export async function refundLost(
  deps: LostDeps,
  lost: Lost,
  reason: string,
): Promise<RefundingLost> {
  const { db } = deps
  const refusal = await whyUnrestored(db, lost)
  if (refusal) return refusal
  const paid = await paymentOf(deps, lost)
  if (paid.kind !== 'paid') return paid
  const origin = await originOf(deps, lost)
  const { paymentHash, plan } = lost
  const amountSats = plan.priceSats
  const refunded = { state: 'refunded', publicId: null, expiresAt: null, seed: null } as const
  const row = { ...origin, ...refunded, by: paid.by, sealedAt: origin.now }
  const done = await attempt(
    db.write({
      lockKey: origin.orderId,
      statements: {
        order: insertRestored(lost, row),
        refund: recordRefund({ paymentHash, amountSats, reason, refundedAt: origin.now }),
      },
    }),
  )
  return 'rows' in done ? { kind: 'refunded', amountSats } : inTheWay(db, lost)
}

/** The answer when the insert was refused: somebody else was faster, or has the id. */
async function inTheWay(db: Db, lost: Lost): Promise<Unrestored> {
  return (await whyUnrestored(db, lost)) ?? { kind: 'in the store', state: 'opening' }
}

/** Whether the order is or was in the store. The insert checks this again. */
async function whyUnrestored(db: Db, { paymentHash, orderId }: Lost): Promise<Unrestored | null> {
  const [here] = await db.read<{ state: OrderState }>(
    'select state from purchase_order where payment_hash = $1 or order_id = $2',
    paymentHash,
    orderId ?? '',
  )
  if (here) return { kind: 'in the store', state: here.state }
  const past = await db.read(
    `select 1 as here from order_tombstone where payment_hash = $1 and ended <> 'dead'`,
    paymentHash,
  )
  return past.length > 0 ? { kind: 'of the past' } : null
}

async function paymentOf(
  { lightning }: LostDeps,
  { paymentHash, preimage }: Lost,
): Promise<
  | { kind: 'paid'; by: 'lookup' | 'preimage' }
  | Extract<Unrestored, { kind: 'not paid' | 'wrong preimage' }>
> {
  if (preimage !== null) {
    const isProof = provesPayment(preimage, paymentHash)
    return isProof ? { kind: 'paid', by: 'preimage' } : { kind: 'wrong preimage' }
  }
  const { state } = await statusAtNode(lightning, paymentHash)
  return state === 'settled' ? { kind: 'paid', by: 'lookup' } : { kind: 'not paid', node: state }
}

/** The fields of a restored row that come from this store and node. */
type Origin = { orderId: string; secretId: string; network: string; now: number }

async function originOf({ lightning, secrets, clock }: LostDeps, lost: Lost): Promise<Origin> {
  const { network } = await lightning.info()
  return {
    orderId: lost.orderId ?? newId('order'),
    secretId: fingerprints(secrets)[0],
    network,
    now: clock.now(),
  }
}

/** JSON: the buyer's terms are lost. */
const NO_TERMS = 'null'

/**
 * Inserts the row; refused if the order is in the store. Its key is known by the order's id alone, if the buyer told
 * that. It is contested from the start, because nobody knows who opened it.
 */
const insertRestored = (
  { paymentHash, product, planId, plan, memo }: Lost,
  row: Origin & {
    state: 'settled' | 'refunded'
    by: 'lookup' | 'preimage'
    publicId: string | null
    seed: Uint8Array | null
    expiresAt: number | null
    sealedAt: number | null
  },
): Statement[] => [
  insertName(row.orderId),
  {
    text: `insert into purchase_order
      (order_id, secret_id, request_hash, product, plan_id, plan, terms, memo, amount_sats,
       client_network, state, created_at, claimed_at, looked_up_at, network, bolt11, payment_hash,
       quote_expires_at, settled_at, settled_by, public_id, seed, expires_at, sealed_at, opened_by,
       contested, restored_at)
      values ($1, $2, $3, $4, $5, $6, '${NO_TERMS}', $7, $8, '', $9, $10, $10, 0, $11, 'unknown', $12,
        $10, $10, $13, $14, $15, $16, $17, '', 1, $10)
      on conflict do nothing`,
    values: [
      row.orderId,
      row.secretId,
      randomBytes(32),
      product,
      planId,
      jcs(plan),
      memo,
      plan.priceSats,
      row.state,
      row.now,
      row.network,
      paymentHash,
      row.by,
      row.publicId,
      row.seed,
      row.expiresAt,
      row.sealedAt,
    ],
    expect: 1,
  },
  // Refused if the order was delivered or expired: its tombstone says so.
  {
    text: `update purchase_order set restored_at = $2
      where payment_hash = $1 and not exists (
        select 1 from order_tombstone where payment_hash = $1 and ended <> 'dead')`,
    values: [paymentHash, row.now],
    expect: 1,
  },
]
