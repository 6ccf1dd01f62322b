/**
 * What the wallet may pay on one UTC day: a small SQLite file in the data folder, shared by all commands of a
 * user. A payment is reserved before the wallet is asked, with the fee that the wallet may pay, and the
 * reservation is only taken back where the payment certainly failed. After a kill it counts as spent.
 *
 * SQLite locks the file as `lock.ts` does, so that of many processes each one sees what the others reserved,
 * and no lock outlives its process.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { namesIn, privateFolder } from './data-folder.ts'
import { BudgetError } from './exit.ts'

/** How long to wait for other processes, each of which holds the lock for some milliseconds. */
const LOCK_MS = 10_000
const VERSION = 1

type Place = { folder: string; now: () => number }
export type BudgetOptions = Place & { maxSatsPerDay: number }

export type BudgetState = {
  /** The UTC day that is counted. Never an earlier one than before, even if the clock goes back. */
  day: string
  isClockBehind: boolean
  /** The file was missing beside saved purchases, so this day counts as spent. */
  isLost: boolean
  /** What was paid, and what is reserved for payments that are under way or were killed, with fees. */
  spentMsat: number
}

export type Payable = { paymentHash: string; amountMsat: number; maxFeeMsat: number }

export type Reservation = {
  /** The wallet has paid, for this fee if it says so. */
  settle(feeMsat: number | undefined): void
  /** No money left the wallet, or will. */
  release(): void
}

export const budgetFile = (folder: string): string => join(folder, 'budget.db')

/**
 * Reserves a payment with its fee.
 * @throws BudgetError if not as much is left of the day, or if the file cannot be trusted.
 */
export function reserve(options: BudgetOptions, payable: Payable): Reservation {
  const { paymentHash, amountMsat, maxFeeMsat } = payable
  const id = randomUUID()
  const refusal = inTurn(options, (database) => {
    const limitMsat = options.maxSatsPerDay * 1000
    const { changes } = database
      .prepare(RESERVE)
      .run({ id, paymentHash, amountMsat, maxFeeMsat, limitMsat })
    return Number(changes) === 1 ? null : stateIn(database, options)
  })
  if (refusal !== null) throw overBudget(options, payable, refusal)
  return {
    settle: (feeMsat = maxFeeMsat) =>
      quietly(options, (database) => {
        // An invoice is paid once, so this replaces what earlier attempts have reserved for it.
        database
          .prepare('delete from attempt where payment_hash = $paymentHash')
          .run({ paymentHash })
        database.prepare(SETTLE).run({ id, paymentHash, amountMsat, feeMsat })
      }),
    release: () =>
      quietly(options, (database) => {
        database.prepare("delete from attempt where id = $id and state = 'reserved'").run({ id })
      }),
  }
}

/** @throws BudgetError if this payment could not be reserved now. Reserves nothing. */
export function checkBudget(options: BudgetOptions, payable: Omit<Payable, 'paymentHash'>): void {
  const state = budgetState(options)
  const leftMsat = options.maxSatsPerDay * 1000 - state.spentMsat
  const isFree = !state.isLost && payable.amountMsat + payable.maxFeeMsat <= leftMsat
  if (!isFree) throw overBudget(options, payable, state)
}

/** Makes the file, where nothing was bought before: from then on, a missing file means that it was lost. */
export function beginBudget(options: Place): void {
  if (existsSync(budgetFile(options.folder))) return
  if (hasPurchases(options.folder)) return
  quietly(options, () => undefined)
}

/** What today's payments come to. Makes no file. @throws BudgetError for a file that cannot be trusted. */
export function budgetState(options: Place): BudgetState {
  const { folder, now } = options
  if (!existsSync(budgetFile(folder))) {
    return { day: dayOf(now()), isClockBehind: false, isLost: hasPurchases(folder), spentMsat: 0 }
  }
  return inTurn(options, (database) => stateIn(database, options))
}

/** Forgets what was spent today, also if the file is damaged. */
export function resetBudget(options: Place): void {
  const clear = (database: DatabaseSync): void => {
    database.exec('delete from attempt')
    database.prepare('update budget set day = $day, is_lost = 0').run({ day: dayOf(options.now()) })
  }
  try {
    inTurn(options, clear)
  } catch (error) {
    if (!(error instanceof BudgetError)) throw error
    const file = budgetFile(options.folder)
    for (const end of ['', '-journal', '-wal', '-shm']) rmSync(file + end, { force: true })
    inTurn(options, clear)
  }
}

/**
 * One statement decides: the sum with this payment must stay within the limit. Attempts to pay one invoice
 * count once, since only one of them can succeed; one that is paid costs nothing more.
 */
const RESERVE = `
  insert into attempt (id, payment_hash, amount_msat, fee_msat, state)
  select $id, $paymentHash, $amountMsat, $maxFeeMsat, 'reserved'
  where (select is_lost from budget) = 0
    and (
      exists (select 1 from attempt where payment_hash = $paymentHash and state = 'paid')
      or (
        select sum(cost) from (
          select max(amount_msat + fee_msat) as cost from (
            select payment_hash, amount_msat, fee_msat from attempt
            union all select $paymentHash, $amountMsat, $maxFeeMsat
          ) group by payment_hash
        )
      ) <= $limitMsat
    )`

const SETTLE = `
  insert into attempt (id, payment_hash, amount_msat, fee_msat, state)
  values ($id, $paymentHash, $amountMsat, $feeMsat, 'paid')`

const SPENT = `
  select coalesce(sum(cost), 0) as spent_msat from (
    select max(amount_msat + fee_msat) as cost from attempt group by payment_hash
  )`

const SCHEMA = `
  create table budget (only integer primary key check (only = 1), day text not null, is_lost integer not null);
  create table attempt (
    id text primary key,
    payment_hash text not null,
    amount_msat integer not null check (amount_msat > 0),
    fee_msat integer not null check (fee_msat >= 0),
    state text not null check (state in ('reserved', 'paid'))
  );
  pragma user_version = ${VERSION}`

/** Works on the file in a transaction of its own, which no other process disturbs. */
function inTurn<T>(place: Place, work: (database: DatabaseSync) => T): T {
  const file = budgetFile(place.folder)
  let database: DatabaseSync | undefined
  try {
    privateFolder(place.folder)
    // SQLite would make it readable for others.
    closeSync(openSync(file, 'a', 0o600))
    database = new DatabaseSync(file, { timeout: LOCK_MS })
    database.exec('pragma synchronous = full; begin immediate')
    prepare(database, place)
    const result = work(database)
    database.exec('commit')
    return result
  } catch (error) {
    throw new BudgetError(
      `The budget cannot be read or written, so nothing is paid: ${file} (${error instanceof Error ? error.message : String(error)}). \`mayfly budget reset\` makes a new one.`,
    )
  } finally {
    // Rolls back what was not committed.
    database?.close()
  }
}

/** Makes the tables in an empty file, refuses a damaged one, and begins a new day. */
function prepare(database: DatabaseSync, { folder, now }: Place): void {
  const day = dayOf(now())
  const { user_version: version } = database.prepare('pragma user_version').get() ?? {}
  if (version === 0) {
    database.exec(SCHEMA)
    const isLost = hasPurchases(folder) ? 1 : 0
    database.prepare('insert into budget values (1, $day, $isLost)').run({ day, isLost })
    return
  }
  if (version !== VERSION) throw new Error('it is of another version of Mayfly')
  const { quick_check: verdict } = database.prepare('pragma quick_check(1)').get() ?? {}
  if (verdict !== 'ok') throw new Error('it is damaged')
  const begun = database
    .prepare('update budget set day = $day, is_lost = 0 where day < $day')
    .run({ day })
  if (Number(begun.changes) === 1) database.exec('delete from attempt')
}

/** A failure leaves the payment counted, and must not hide that it was made. */
function quietly(place: Place, work: (database: DatabaseSync) => void): void {
  try {
    inTurn(place, work)
  } catch (error) {
    if (!(error instanceof BudgetError)) throw error
  }
}

function stateIn(database: DatabaseSync, { now }: Place): BudgetState {
  const budget = database.prepare('select day, is_lost from budget').get()
  if (budget === undefined) throw new Error('it is damaged')
  const day = String(budget.day)
  return {
    day,
    isClockBehind: day > dayOf(now()),
    isLost: budget.is_lost === 1,
    spentMsat: Number(database.prepare(SPENT).get()?.spent_msat),
  }
}

function overBudget(
  { folder, maxSatsPerDay }: BudgetOptions,
  { amountMsat, maxFeeMsat }: Omit<Payable, 'paymentHash'>,
  { isLost, isClockBehind, day, spentMsat }: BudgetState,
): BudgetError {
  const price = `The price is ${sats(amountMsat)} sat`
  if (isLost) {
    return new BudgetError(
      `${price}, and nothing was paid: ${budgetFile(folder)} was missing beside saved purchases, so today counts as spent. If that is right, wait until 00:00 UTC. Otherwise: mayfly budget reset`,
    )
  }
  const left = Math.max(0, maxSatsPerDay * 1000 - spentMsat)
  const fee = maxFeeMsat === 0 ? '' : ` and up to ${sats(maxFeeMsat)} sat of fees`
  const when = isClockBehind
    ? `The clock of this machine is behind: payments count as those of ${day}. Set it, and then: mayfly budget reset`
    : 'More is free at 00:00 UTC, or with a higher MAYFLY_MAX_SATS_PER_DAY. `mayfly budget` shows what was spent.'
  return new BudgetError(
    `${price}${fee}, and ${sats(left)} of the day's ${maxSatsPerDay} sat are left, so nothing was paid. ${when}`,
  )
}

/** Satoshis with up to three decimals, and no trailing zeros. */
export const sats = (msat: number): string => String(msat / 1000)

const hasPurchases = (folder: string): boolean =>
  ['capabilities', 'purchases'].some((of) => namesIn(join(folder, of), '.json').length > 0)

const dayOf = (now: number): string => new Date(now).toISOString().slice(0, 10)
