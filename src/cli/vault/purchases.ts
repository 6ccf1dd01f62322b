/** The purchases of the vault. One is written before money moves, and goes when it is delivered or given up. */
import type { DatabaseSync } from 'node:sqlite'
import type { PurchaseRecord, PurchaseStore } from '../../client/index.ts'
import { parseJson } from '../../lib/json.ts'
import { CliError } from '../exit.ts'
import { type BudgetOptions, release, reserve, settle } from './budget.ts'
import { fromVault, inVault, otherProcess, type Place, rowsIn, VaultError } from './vault.ts'

/** A purchase that is not delivered, its name, and the other process that works on it now. */
export type OpenPurchase = {
  name: string
  record: PurchaseRecord
  heldBy: number | null
  /** This process works on it. */
  isMine: boolean
}

export type StoreOptions = {
  /** The name for a purchase that begins. It is asked for in the transaction that takes it. */
  nameFor: (isTaken: (name: string) => boolean) => string
  /** Saves what was bought, in the transaction with which the purchase goes. */
  onDelivered: (db: DatabaseSync, name: string, record: PurchaseRecord) => void
}

/** The vault as the SDK's store of purchases. */
export function vaultStore(place: BudgetOptions, options: StoreOptions): PurchaseStore {
  return {
    load: (key) => fromVault(place, null, (db) => findIn(db, 'key', key)?.record ?? null),
    save: (record) => inVault(place, (db) => saveIn(db, record, { ...options, place })),
  }
}

function saveIn(
  db: DatabaseSync,
  record: PurchaseRecord,
  { place, nameFor, onDelivered }: StoreOptions & { place: BudgetOptions },
): boolean {
  const { idempotencyKey: key, revision, state } = record
  const before = findIn(db, 'key', key)
  if ((before?.record.revision ?? 0) !== revision - 1) return false
  const name = before?.name ?? nameFor((some) => isTaken(db, some))
  if (state === 'paying') reserve(db, record, place)
  if (state === 'failed') release(db, record)
  if (state === 'paid') settle(db, record, place)
  if (state === 'delivered') {
    onDelivered(db, name, record)
    db.prepare('delete from purchase where key = $key').run({ key })
    return true
  }
  if (before === null) {
    if (findIn(db, 'name', name) !== null) throw nameTaken(name)
    // Another process may have bought it since this one looked.
    if (record.extends === undefined && isSavedIn(db, name)) throw nameSaved(name)
  }
  write(db, { name, record, at: place.now(), pid: process.pid })
  return true
}

const SAVE = `
  insert into purchase (key, name, revision, record, pid, written_at)
  values ($key, $name, $revision, $record, $pid, $at)
  on conflict (key) do update set revision = excluded.revision, record = excluded.record,
    pid = excluded.pid, written_at = excluded.written_at`

type Row = { name: string; record: PurchaseRecord; at: number; pid: number | null }

function write(db: DatabaseSync, { name, record, at, pid }: Row): void {
  const { idempotencyKey: key, revision } = record
  db.prepare(SAVE).run({ key, name, revision, record: JSON.stringify(record), pid, at })
}

/** This process works on a purchase no more. Where the vault takes nothing, that is seen when it has ended. */
export function leavePurchase(place: Place, name: string): void {
  const { pid } = process
  try {
    fromVault(place, undefined, (db) => {
      const leave = db.prepare('update purchase set pid = null where name = $name and pid = $pid')
      leave.run({ name, pid })
    })
  } catch (error) {
    if (!(error instanceof VaultError)) throw error
  }
}

export const nameTaken = (name: string): CliError =>
  new CliError(
    `Something else is being bought as ${name}. Choose another --name, continue it (\`mayfly list\` shows how), or give it up: mayfly forget ${name}.`,
  )

export const openPurchases = (place: Place): OpenPurchase[] =>
  rowsIn(place, 'select * from purchase order by name').flatMap((row) => rowOf(row) ?? [])

export const findPurchase = (place: Place, name: string): OpenPurchase | null =>
  fromVault(place, null, (db) => findIn(db, 'name', name))

export const openPurchase = (place: Place, name: string): PurchaseRecord | null =>
  findPurchase(place, name)?.record ?? null

/** Gives a purchase up, with anything that was paid for it. What it may have spent stays spent. */
export const dropPurchase = (place: Place, name: string): void =>
  fromVault(place, undefined, (db) => {
    db.prepare('delete from purchase where name = $name').run({ name })
  })

/** Adds a purchase that comes from elsewhere. Nobody here knows what its wallet did, so it is unknown. */
export function importIn(db: DatabaseSync, name: string, record: PurchaseRecord): void {
  const invoices = record.invoices.map((invoice, at) =>
    at < record.invoices.length - 1 ? invoice : { handedAt: new Date(0).toISOString(), ...invoice },
  )
  const isOpen = record.state === 'quoted' || record.state === 'failed'
  const unknown: PurchaseRecord = isOpen ? { ...record, state: 'paying', invoices } : record
  write(db, { name, record: unknown, at: 0, pid: null })
}

/** The command that continues it. */
export function continuing(name: string, { product, extends: extended }: PurchaseRecord): string {
  if (product === null) return 'mayfly pay INVOICE'
  if (extended !== undefined) return `mayfly extend ${name}`
  return `mayfly ${product === 'whisper' ? 'whisper send' : `buy ${product}`} --resume ${name}`
}

/** Whether a wallet may have paid it, or may pay it yet. */
export const isUnknown = ({ state }: PurchaseRecord): boolean => state === 'paying'

/** Whether something is being bought, or is saved, under this name. */
export function isTaken(db: DatabaseSync, name: string): boolean {
  return isSavedIn(db, name) || findIn(db, 'name', name) !== null
}

const isSavedIn = (db: DatabaseSync, name: string): boolean =>
  db.prepare('select 1 from capability where name = $name').get({ name }) !== undefined

export const nameSaved = (name: string): CliError =>
  new CliError(`A capability named ${name} already exists. Choose another --name.`)

export function findIn(db: DatabaseSync, by: 'key' | 'name', value: string): OpenPurchase | null {
  const row = db.prepare(`select * from purchase where ${by} = $value`).get({ value })
  return row === undefined ? null : rowOf(row)
}

function rowOf({ name, record, pid, written_at }: Record<string, unknown>): OpenPurchase | null {
  const parsed = parseJson(String(record)) as PurchaseRecord | undefined
  if (parsed?.version !== 1) return null
  const heldBy = otherProcess(pid, written_at)
  return { name: String(name), record: parsed, heldBy, isMine: pid === process.pid }
}
