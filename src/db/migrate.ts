/**
 * Forward-only migrations: the files `migrations/0001-….sql` and up run once each, in order. One that ends in
 * `.sqlite.sql` or `.postgres.sql` runs on that engine only. The store keeps the digest of each, so that a store of
 * an unreleased version, whose tables may differ, is refused.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { type Db, StoreBusy, StoreUnusable, type Tx, type UnmigratedDb } from './db.ts'

/** What an engine needs besides the SQL that all of them share. */
export type Dialect = {
  engine: Db['engine']
  /** Replaces the words of a migration that the engine spells differently. */
  translate(sql: string): string
  /** Returns a row if the store has the table of migrations. */
  findMigrations: string
  /** Null where the engine itself lets one migrate at a time. */
  turns: Turns | null
}

export const SQLITE: Dialect = {
  engine: 'sqlite',
  translate: (sql) => sql,
  findMigrations: `select 1 as found from sqlite_master where type = 'table' and name = 'migration'`,
  turns: null,
}

/** How the instance that starts first migrates while the others wait for it. */
type Turns = {
  /** Run first: from here on, no wait has an end of its own. */
  begin: string
  /** Returns a row if it is this instance's turn. */
  tryClaim: string
  /** Waits for its turn. */
  claim: string
  /** A statement that waits longer than this for a lock fails. */
  boundLockWaits(ms: number): string
}

export type MigrateOptions = {
  /** Called when the start has to wait, with the reason. */
  onWaiting?: (reason: string) => void
  /** Called before each migration of a store that has rows of an earlier version, with its name. */
  onMigrating?: (name: string) => void
  /** How long one statement waits for the locks of others, and all tries together. */
  lockWaits?: { onceMs: number; inAllMs: number; pauseMs: number }
  folder?: URL
}

const FOLDER = new URL('./migrations/', import.meta.url)

/**
 * Whoever comes after a statement that waits for a table waits behind it, and requests give up after 5 seconds. So it
 * waits for less, and tries again once they are through.
 */
const LOCK_WAITS = { onceMs: 2_000, inAllMs: 60_000, pauseMs: 1_000 }

/**
 * Brings the store to this program's version, or changes nothing.
 * @throws StoreUnusable when the store was written by a newer or an unreleased program, or others hold a lock on it for
 *   too long.
 */
export async function migrate(
  db: UnmigratedDb,
  dialect = SQLITE,
  { folder = FOLDER, lockWaits = LOCK_WAITS, ...told }: MigrateOptions = {},
): Promise<void> {
  const migrations = await load(dialect.engine, folder)
  const giveUpAt = performance.now() + lockWaits.inAllMs
  for (;;) {
    let at = 'the table of migrations'
    const onMigrating = (name: string, isNew: boolean): void => {
      at = name
      if (!isNew) told.onMigrating?.(name)
    }
    try {
      const plan = { dialect, migrations, lockTimeoutMs: lockWaits.onceMs }
      return await db.tx((tx) => runAll(tx, plan, { ...told, onMigrating }))
    } catch (error) {
      if (!(error instanceof StoreBusy)) throw error
      if (performance.now() >= giveUpAt) throw lockedOut(at)
      told.onWaiting?.(`another session holds a lock that ${at} needs (${error.message})`)
      await wait(lockWaits.pauseMs)
    }
  }
}

const lockedOut = (at: string): StoreUnusable =>
  new StoreUnusable(
    `The database cannot be migrated: another session holds a lock that ${at} needs. Nothing was changed. ` +
      'End that session, or wait until it has ended, and start again: docs/run/postgresql.md says how to find it.',
  )

type Plan = { dialect: Dialect; migrations: Migration[]; lockTimeoutMs: number }

async function runAll(
  tx: Tx,
  { dialect, migrations, lockTimeoutMs }: Plan,
  {
    onWaiting,
    onMigrating,
  }: { onWaiting?: (reason: string) => void; onMigrating: (name: string, isNew: boolean) => void },
): Promise<void> {
  if (dialect.turns) {
    const { begin, tryClaim, claim, boundLockWaits } = dialect.turns
    await tx.run(begin)
    const [claimed] = await tx.run(tryClaim)
    if (!claimed) {
      onWaiting?.('another instance migrates the database')
      await tx.run(claim)
    }
    await tx.run(boundLockWaits(lockTimeoutMs))
  }
  // Checked first: a user without the right to create tables can start on a migrated store.
  const [found] = await tx.run(dialect.findMigrations)
  if (!found) {
    await tx.run(
      dialect.translate(
        'create table migration (version integer primary key, name text not null, sha256 text not null)',
      ),
    )
  }
  const rows = await tx.run<Done>('select * from migration')
  const refusal = refusalOf(rows, migrations)
  if (refusal !== null) throw new StoreUnusable(refusal)
  const done = new Set(rows.map(({ version }) => version))
  for (const { version, name, sha256, statements } of migrations) {
    // One that was written beside others may come after a later one.
    if (done.has(version)) continue
    onMigrating(name, done.size === 0)
    for (const statement of statements) await tx.run(dialect.translate(statement))
    const text = 'insert into migration (version, name, sha256) values ($1, $2, $3)'
    await tx.run(text, version, name, sha256)
  }
}

/** Why this program does not start on the store, by the migrations that it has. Null if it does. */
export async function whyRefused(db: Pick<Db, 'engine' | 'read'>): Promise<string | null> {
  return refusalOf(await db.read<Done>('select * from migration'), await load(db.engine, FOLDER))
}

/** A migration that a store has. */
type Done = { version: number; sha256?: string }

function refusalOf(rows: Done[], migrations: Migration[]): string | null {
  const known = new Map(migrations.map(({ version, sha256 }) => [version, sha256]))
  if (rows.some(({ version, sha256 }) => known.has(version) && known.get(version) !== sha256)) {
    return 'The database was written by an unreleased version of Mayfly. This version cannot use it: start with a new one.'
  }
  // Each is asked for, not the highest: a newer program may have run one that landed late, with a lower number.
  const unknown = rows.find(({ version }) => !known.has(version))
  if (!unknown) return null
  return `The database has migration ${unknown.version}, which this Mayfly does not know. Start the newer Mayfly that wrote it.`
}

type Migration = {
  version: number
  name: string
  statements: string[]
  /** Of the statements, in hex. Comments may change. */
  sha256: string
}

async function load(engine: Db['engine'], folder: URL): Promise<Migration[]> {
  const names = (await readdir(folder))
    .filter((name) => {
      const [, only = engine] = /^\d{4}-[a-z-]+(?:\.([a-z]+))?\.sql$/.exec(name) ?? [null, null]
      return only === engine
    })
    .sort()
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(new URL(name, folder), 'utf8')
      const statements = split(sql)
      const sha256 = createHash('sha256').update(statements.join(';')).digest('hex')
      return { version: Number(name.slice(0, 4)), name, statements, sha256 }
    }),
  )
}

/** Statements end in a semicolon at the end of a line; `--` comments are for the reader. */
function split(sql: string): string[] {
  return sql
    .replaceAll(/--.*$/gm, '')
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}
