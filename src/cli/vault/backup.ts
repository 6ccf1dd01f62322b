/**
 * Everything of a vault that cannot be had again, as one file: capabilities, purchases under way, what the day has
 * spent, and the bytes of reads that nobody has opened. How far a listener got stays out: an older place would send
 * webhooks twice.
 */
import { parseKept } from '../../client/capability-file.ts'
import type { PurchaseRecord } from '../../client/index.ts'
import { base64, base64Bytes } from '../../lib/bytes.ts'
import { isObject } from '../../lib/json.ts'
import { type CliError, misuse } from '../exit.ts'
import { findIn, importIn, isTaken } from './purchases.ts'
import { isName } from './saved.ts'
import { fromVault, inVault, type Place } from './vault.ts'

export type Backup = {
  capabilities: { name: string; text: string }[]
  purchases: { name: string; record: PurchaseRecord }[]
  spending: Record<(typeof SPENDING)[number], string | number>[]
  reads: { publicId: string; envelope: string }[]
}

const SPENDING = ['day', 'key', 'bolt11', 'payment_hash', 'cost_msat', 'state'] as const

export const NOTHING: Backup = { capabilities: [], purchases: [], spending: [], reads: [] }

export const readBackup = (place: Place): Backup =>
  fromVault(place, NOTHING, (db) => ({
    capabilities: db
      .prepare('select name, text from capability order by name')
      .all() as Backup['capabilities'],
    purchases: db
      .prepare('select name, record from purchase order by name')
      .all()
      .map(({ name, record }) => ({ name: String(name), record: JSON.parse(String(record)) })),
    spending: db.prepare(`select ${SPENDING} from spending`).all() as Backup['spending'],
    reads: db
      .prepare('select public_id, envelope from unopened')
      .all()
      .map(({ public_id: publicId, envelope }) => ({
        publicId: String(publicId),
        envelope: base64(new Uint8Array(envelope as Uint8Array)),
      })),
  }))

/** The counts of what was added. */
export type Restored = { capabilities: number; purchases: number; reads: number }

/**
 * Adds what is not here, in one transaction. What was spent only grows. A purchase that may be under way elsewhere is
 * unknown here. @throws CliError if a name stands for something else here, and then nothing is added.
 */
export function restoreBackup(place: Place, backup: Backup): Restored {
  return inVault(place, (db) => {
    const done: Restored = { capabilities: 0, purchases: 0, reads: 0 }
    const textOf = db.prepare('select text from capability where name = $name')
    for (const { name, text } of backup.capabilities) {
      const here = textOf.get({ name })
      const mine = parseKept(text)?.capability.publicId
      if (here !== undefined && parseKept(String(here.text))?.capability.publicId === mine) continue
      // The extension of a capability is a purchase of its name.
      const extended = findIn(db, 'name', name)?.record.extends
      if (here !== undefined || (isTaken(db, name) && extended !== mine)) throw taken(name)
      db.prepare('insert into capability (name, text) values ($name, $text)').run({ name, text })
      done.capabilities++
    }
    for (const { name, record } of backup.purchases) {
      const isOver = textOf.get({ name }) !== undefined && record.extends === undefined
      if (isOver || findIn(db, 'key', record.idempotencyKey) !== null) continue
      if (findIn(db, 'name', name) !== null) throw taken(name)
      importIn(db, name, record)
      done.purchases++
    }
    for (const row of backup.spending) db.prepare(SPEND).run(row)
    for (const { publicId, envelope } of backup.reads) {
      const bytes = base64Bytes(envelope) ?? new Uint8Array()
      const { changes } = db.prepare(READ).run({ publicId, envelope: bytes })
      done.reads += Number(changes)
    }
    return done
  })
}

const SPEND = `
  insert into spending (${SPENDING}) values (${SPENDING.map((name) => `$${name}`)})
  on conflict (day, key, bolt11) do update set cost_msat = max(cost_msat, excluded.cost_msat),
    state = case excluded.state when 'paid' then 'paid' else state end`

const READ = `
  insert into unopened (public_id, envelope)
  select $publicId, $envelope where not exists (select 1 from unopened where public_id = $publicId)`

const taken = (name: string): CliError =>
  misuse(`Something else is saved as ${name} here, so nothing was imported.`)

/** Whether this is a purchase that `export` wrote. */
const isRecord = (value: unknown): value is PurchaseRecord =>
  isObject(value) &&
  value.version === 1 &&
  typeof value.idempotencyKey === 'string' &&
  Number.isSafeInteger(value.revision) &&
  STATES.includes(String(value.state)) &&
  Array.isArray(value.invoices) &&
  value.invoices.every((invoice) => isObject(invoice) && typeof invoice.bolt11 === 'string')

const STATES = ['quoted', 'paying', 'failed', 'paid', 'delivered']

/** Whether this is what `export --all` wrote. */
export function isBackup(value: unknown): value is Backup {
  if (!isObject(value)) return false
  const { capabilities, purchases, spending, reads } = value
  const all = (rows: unknown, isRow: (row: Record<string, unknown>) => boolean): boolean =>
    Array.isArray(rows) && rows.every((row) => isObject(row) && isRow(row))
  return (
    all(capabilities, ({ name, text }) => isName(String(name)) && typeof text === 'string') &&
    all(purchases, ({ name, record }) => isName(String(name)) && isRecord(record)) &&
    all(spending, (row) => SPENDING.every((name) => /^(string|number)$/.test(typeof row[name]))) &&
    all(reads, (row) => [row.publicId, row.envelope].every((text) => typeof text === 'string'))
  )
}
