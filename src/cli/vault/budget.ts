/**
 * What the wallet may pay on one UTC day. A payment is reserved with its fee in the transaction that writes its purchase
 * as `paying`, and given back only when the wallet says that it did not pay. What is unknown counts as spent, and so
 * does what was killed.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { PurchaseRecord } from '../../client/index.ts'
import { msatOf } from '../../client/offer.ts'
import { BudgetError } from '../exit.ts'
import { change, fromVault, type Place } from './vault.ts'

/** How long a day that is over stays: a clock that was ahead must not lose what it has spent. */
const KEPT_MS = 31 * 86_400_000

type Timed = Place & { now: () => number }

export type BudgetOptions = Timed & { maxSatsPerDay: number }

type BudgetState = ReturnType<typeof stateIn>

/** What today's payments come to. */
export const budgetState = (place: Timed): BudgetState =>
  fromVault(place, stateOf(dayOf(place.now()), {}), (db) => stateIn(db, place))

/** @throws BudgetError if this price could not be paid now. Reserves nothing. */
export function checkBudget(options: BudgetOptions, priceMsat: number): void {
  const state = budgetState(options)
  if (state.spentMsat + priceMsat > options.maxSatsPerDay * 1000) {
    throw overBudget(options, { priceMsat, feeMsat: 0, state })
  }
}

/** Counts nothing of today as spent. What is still unknown is counted again when it is tried again. */
export const resetBudget = (place: Timed): unknown =>
  change(place, 'delete from spending where day >= $day', { day: dayOf(place.now()) })

/**
 * Counts what the last invoice of a record may cost, in the transaction that writes the record. One statement decides,
 * and its row count is the answer. @throws BudgetError
 */
export function reserve(
  db: DatabaseSync,
  { idempotencyKey, invoices }: PurchaseRecord,
  options: BudgetOptions,
): void {
  const invoice = invoices.at(-1)
  if (invoice === undefined) return
  const state = stateIn(db, options)
  db.prepare('delete from spending where day < $day').run({ day: dayOf(options.now() - KEPT_MS) })
  const { bolt11, paymentHash, amountSats, reservedMsat } = invoice
  const priceMsat = msatOf(amountSats)
  const costMsat = Math.max(priceMsat, reservedMsat ?? 0)
  const { changes } = db.prepare(RESERVE).run({
    day: state.day,
    key: idempotencyKey,
    bolt11,
    paymentHash,
    costMsat,
    limitMsat: options.maxSatsPerDay * 1000,
  })
  if (Number(changes) === 1) return
  throw overBudget(options, { priceMsat, feeMsat: costMsat - priceMsat, state })
}

/**
 * The wallet has paid. The row is never lowered, and grows if the fee was higher than reserved. What has no row, since it
 * counted as failed or comes from elsewhere, is counted on the day on which it was handed over.
 */
export function settle(
  db: DatabaseSync,
  { idempotencyKey: key, invoices, feeMsat }: PurchaseRecord,
  { now }: Timed,
): void {
  const invoice = invoices.at(-1)
  if (invoice === undefined) return
  const { bolt11, paymentHash, amountSats, handedAt } = invoice
  const costMsat = msatOf(amountSats) + (feeMsat ?? 0)
  const { changes } = db.prepare(SETTLE).run({ key, bolt11, costMsat })
  if (Number(changes) > 0) return
  const day = handedAt?.slice(0, 10) ?? dayOf(now())
  db.prepare(PAID).run({ day, key, bolt11, paymentHash, costMsat })
}

/** The wallet says that it did not pay. */
export function release(db: DatabaseSync, { idempotencyKey, invoices }: PurchaseRecord): void {
  const { bolt11 = '' } = invoices.at(-1) ?? {}
  db.prepare(RELEASE).run({ key: idempotencyKey, bolt11 })
}

const RESERVE = `
  insert into spending (day, key, bolt11, payment_hash, cost_msat, state)
  select $day, $key, $bolt11, $paymentHash, $costMsat, 'reserved'
  where $costMsat + (
    select coalesce(sum(cost_msat), 0) from spending
    where day >= $day and not (key = $key and bolt11 = $bolt11)
  ) <= $limitMsat
  on conflict (day, key, bolt11) do update set cost_msat = max(cost_msat, excluded.cost_msat)`

const SETTLE = `
  update spending set state = 'paid', cost_msat = max(cost_msat, $costMsat)
  where key = $key and bolt11 = $bolt11`

const PAID = `
  insert into spending (day, key, bolt11, payment_hash, cost_msat, state)
  values ($day, $key, $bolt11, $paymentHash, $costMsat, 'paid')`

const RELEASE = `
  delete from spending where key = $key and bolt11 = $bolt11 and state = 'reserved'`

function stateIn(db: DatabaseSync, { now }: Timed) {
  const day = dayOf(now())
  return stateOf(day, { ...db.prepare(SPENT).get({ day }) })
}

const stateOf = (day: string, { spent = 0, last }: Record<string, unknown>) => ({
  /** The UTC day. */
  day,
  /** Payments of a later day count, too: the clock of this machine was ahead, or is behind now. */
  isClockBehind: String(last ?? '') > day,
  /** What was paid and what is reserved, with fees. */
  spentMsat: Number(spent),
})

const SPENT =
  'select coalesce(sum(cost_msat), 0) as spent, max(day) as last from spending where day >= $day'

function overBudget(
  { maxSatsPerDay }: BudgetOptions,
  { priceMsat, feeMsat, state }: { priceMsat: number; feeMsat: number; state: BudgetState },
): BudgetError {
  const left = Math.max(0, maxSatsPerDay * 1000 - state.spentMsat)
  const fee = feeMsat === 0 ? '' : ` and up to ${sats(feeMsat)} sat of fees`
  const when = state.isClockBehind
    ? 'Payments of a later day count too: the clock of this machine was ahead, or is behind. Set it, and then: mayfly budget --reset'
    : 'More is free at 00:00 UTC, or with a higher MAYFLY_MAX_SATS_PER_DAY. `mayfly budget` shows what was spent.'
  return new BudgetError(
    `The price is ${sats(priceMsat)} sat${fee}, and ${sats(left)} of the day's ${maxSatsPerDay} sat are left, so nothing was paid. ${when}`,
  )
}

/** Satoshis with up to three decimals, and no trailing zeros. */
export const sats = (msat: number): string => String(msat / 1000)

const dayOf = (now: number): string => new Date(now).toISOString().slice(0, 10)
