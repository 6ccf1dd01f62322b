/** The doctor's look into a store, which it only reads: it migrates nothing, beside whatever service runs. */
import { statSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { databaseTime } from '../../db/clock.ts'
import { lastBeatAt } from '../../db/clock-store.ts'
import type { Db, Row } from '../../db/db.ts'
import { metaOf } from '../../db/meta.ts'
import { whyRefused } from '../../db/migrate.ts'
import { rfc3339, systemClock } from '../../lib/clock.ts'
import { messageOf } from '../../lib/errors.ts'
import { createOrderStore } from '../../payment/store.ts'
import { createSecrets, fingerprints } from '../../secrets/secrets.ts'
import type { Config } from '../../service/config.ts'
import type { Secrets } from '../../service/secret-file.ts'

/** A line of what `mayfly doctor` finds. */
export type Finding = { check: string; state: 'ok' | 'note' | 'bad'; says: string }

export const ok = (check: string, says: string): Finding => ({ check, state: 'ok', says })
/** Nothing is broken, and the operator may want to know. */
export const note = (check: string, says: string): Finding => ({ check, state: 'note', says })
/** It keeps the service from starting or selling, or somebody from what is owed. */
export const bad = (check: string, says: string): Finding => ({ check, state: 'bad', says })

/** What does not matter to the expiry of anything. */
const MAX_SKEW_MS = 30_000

export type Given = {
  config: Config
  /** The secrets that the service would use, or null if they are missing, which is another finding. */
  secrets: Secrets | null
  /** Whether a service answers: only then the last time in its store must be now. */
  isServed: boolean
}

/** Everything that the store tells. It is empty, or another finding says why it cannot be read. */
export async function checkContent(db: Db, given: Given): Promise<Finding[]> {
  try {
    const refusal = await whyRefused(db)
    if (refusal !== null) return [bad('version', refusal)]
    const checks = [checkOwner, checkOrders, checkDebts, checkTime]
    const found = await Promise.all(checks.map((check) => Array.fromAsync(check(db, given))))
    return found.flat()
  } catch (error) {
    // A store of an older version lacks tables until its service has started once.
    return [note('content', `the store cannot be looked into: ${messageOf(error)}`)]
  }
}

/** A store belongs to one kind of node and one network for good. */
async function* checkOwner(db: Db, { config }: Given): AsyncGenerator<Finding> {
  const owner = await metaOf(db, 'lightning')
  const [backend, network] = owner?.split(' on ') ?? []
  const { lightningUrl, network: wanted } = config
  if (owner === null || (backend === lightningUrl.kind && (wanted ?? network) === network)) return
  const configured = `${lightningUrl.kind}${wanted === null ? '' : ` on ${wanted}`}`
  yield bad(
    'node of the store',
    `it belongs to ${owner}, and the settings say ${configured}. Restore MAYFLY_LIGHTNING_URL, or choose another MAYFLY_DATABASE_URL`,
  )
}

/** Orders that the secret does not open: their buyers would pay again. */
async function* checkOrders(db: Db, { config, secrets }: Given): AsyncGenerator<Finding> {
  if (secrets === null) return
  const ids = fingerprints(createSecrets(secrets))
  const { refuseForeignOrders } = await import('../../service/start-checks.ts')
  try {
    await refuseForeignOrders(createOrderStore(db).foreign(ids, systemClock.now()), config)
  } catch (error) {
    yield bad('secret', messageOf(error))
  }
}

async function* checkDebts(db: Db): AsyncGenerator<Finding> {
  const [row] = await db.read<{ count: number }>(
    `select count(*) as count from purchase_order where state = 'paid_unfulfilled'`,
  )
  const count = row?.count ?? 0
  const says = `${count} paid ${count === 1 ? 'order waits' : 'orders wait'} for you: mayfly order list --state paid_unfulfilled`
  yield count === 0
    ? ok('debts', 'nobody has paid for what could not be provisioned')
    : bad('debts', says)
}

/** The service takes the time of its database. The beat of one that runs is seconds old. */
async function* checkTime(db: Db, { isServed }: Given): AsyncGenerator<Finding> {
  const here = systemClock.now()
  const reading = db.engine === 'postgres' ? await databaseTime(db, systemClock.monotonic)() : null
  const now = reading?.at ?? here
  if (Math.abs(now - here) > MAX_SKEW_MS) {
    yield bad(
      'time of the database',
      `it says ${rfc3339(now)}, and here it is ${rfc3339(here)}: one of them is wrong. The service takes the database's. Synchronize both with NTP`,
    )
  }
  const beatAt = await lastBeatAt(db)
  if (beatAt === null) return
  const where = `the last time in the store is ${rfc3339(beatAt)}, and now it is ${rfc3339(now)}`
  if (beatAt - now > MAX_SKEW_MS) {
    yield bad(
      'time',
      `${where}: one of them is wrong. If it is the store's, the next start sets that right, and sells nothing for up to 15 minutes`,
    )
  } else if (isServed && now - beatAt > MAX_SKEW_MS) {
    yield bad(
      'time',
      `${where}: the service that answers uses another store, or cannot write to it`,
    )
  }
}

const refuse = (): Promise<never> => Promise.reject(new Error('the doctor only reads'))
/** A store that is not there, for what needs none. */
export const NO_STORE: Db = {
  engine: 'sqlite',
  read: refuse,
  scan: refuse,
  write: refuse,
  close: async () => undefined,
}

/** Works on a SQLite file, opened for reading only. @throws if it cannot be opened. */
export async function inSqlite<T>(file: string, work: (db: Db) => Promise<T>): Promise<T> {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return await work({
      ...NO_STORE,
      async read<T extends Row>(text: string, ...values: Row[string][]) {
        const statement = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
        return statement.all(...(values as SQLInputValue[])) as T[]
      },
    })
  } finally {
    database.close()
  }
}

/** Files that others on the machine can read: the store has plans and events, and the secret opens all. */
export function* checkReaders(files: readonly string[]): Generator<Finding> {
  const open = files.filter((file) => {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & 0o077) !== 0
  })
  if (open.length === 0) return
  yield bad('permissions', `others can read ${open.join(' and ')}: chmod 600 ${open.join(' ')}`)
}
