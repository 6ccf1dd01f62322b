/** Stores for tests, on the engine that MAYFLY_TEST_ENGINE names: `sqlite` (default) or `postgres`. */
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after } from 'node:test'
import type { Db, Row, Value } from '../../src/db/db.ts'
import { openStore } from '../../src/db/open.ts'
import { connect, settingsOf } from '../../src/db/postgres/connection.ts'
import { type After, temporaryFolder } from './folder.ts'
import { aPostgresDatabase } from './postgres.ts'

/** Anything with a store: a server, a shop, or only the URL. */
export type Stored = { databaseUrl: string }

/** The value of MAYFLY_DATABASE_URL for a new store. */
export async function aDatabaseUrl(t: After): Promise<string> {
  switch (process.env.MAYFLY_TEST_ENGINE ?? 'sqlite') {
    case 'sqlite':
      return `sqlite:${join(await temporaryFolder(t), 'mayfly.db')}`
    case 'postgres':
      return aPostgresDatabase()
    default:
      throw new Error('MAYFLY_TEST_ENGINE must be sqlite or postgres')
  }
}

/** The same for a store that has its tables already: a copy of an empty one, which costs less than a migration. */
export async function aMigratedDatabaseUrl(t: After): Promise<string> {
  migrated ??= migrateTemplate()
  if (process.env.MAYFLY_TEST_ENGINE === 'postgres') return aPostgresDatabase(await migrated)
  // First, because a clean-up that is told while another test runs belongs to that test.
  const databaseUrl = await aDatabaseUrl(t)
  await copyFile(fileOf(await migrated), fileOf(databaseUrl))
  return databaseUrl
}

let migrated: Promise<string> | null = null
const endings: (() => unknown)[] = []
// A hook belongs to the test or suite that runs when it is set, so this one is set for the file.
after(async () => {
  for (const end of endings) await end()
})

async function migrateTemplate(): Promise<string> {
  const databaseUrl = await aDatabaseUrl({ after: (work) => endings.push(work) })
  const db = await openDatabase(databaseUrl)
  await db.close()
  return databaseUrl
}

/** Opens and migrates a store like the program. The caller closes it. */
export function openDatabase(databaseUrl: string): Promise<Db> {
  return isPostgres(databaseUrl)
    ? openStore({ kind: 'postgres', url: `${databaseUrl}?pool=4` })
    : openStore({ kind: 'sqlite', file: fileOf(databaseUrl) })
}

/** A new store with its tables, which is closed when the test ends. */
export async function aDatabase(t: After): Promise<Db> {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  return db
}

/** The settings that a start on this engine needs besides the URL. */
export function settingsFor(databaseUrl: string): Record<string, string> {
  return {
    MAYFLY_DATABASE_URL: databaseUrl,
    ...(isPostgres(databaseUrl) ? { MAYFLY_SECRET: '11'.repeat(32) } : {}),
  }
}

/** Runs a statement beside the running server. Its values are `$1` and so on. */
export async function query(
  { databaseUrl }: Stored,
  text: string,
  ...values: Value[]
): Promise<Row[]> {
  if (isPostgres(databaseUrl)) {
    const connection = await connect(settingsOf(databaseUrl))
    const { results, failure } = await connection.send([{ text, values }])
    await connection.end()
    if (failure) throw failure.error
    return results[0]?.rows ?? []
  }
  const store = new DatabaseSync(fileOf(databaseUrl), { timeout: 60_000 })
  try {
    return store
      .prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
      .all(...values)
      .map((row) => ({ ...row }) as Row)
  } finally {
    store.close()
  }
}

/** Hides a table, so that the service fails there. Returns what shows it again. */
export async function hideTable(of: Stored, table: string): Promise<() => Promise<void>> {
  await query(of, `alter table ${table} rename to lost`)
  return async () => {
    await query(of, `alter table lost rename to ${table}`)
  }
}

/**
 * Whether the store contains a text: in any of its files on SQLite, or in any cell of any table on
 * PostgreSQL.
 */
export async function holds({ databaseUrl }: Stored, text: string): Promise<boolean> {
  if (!isPostgres(databaseUrl)) {
    const parts = ['', '-wal'].map((part) => readFile(fileOf(databaseUrl) + part).catch(() => ''))
    return (await Promise.all(parts)).some((bytes) => bytes.includes(text))
  }
  const tables = await query(
    { databaseUrl },
    `select table_name as name from information_schema.tables where table_schema = 'public'`,
  )
  const cells = await Promise.all(
    tables.map(async ({ name }) => {
      const rows = await query({ databaseUrl }, `select * from ${name}`)
      return rows.flatMap((row) => Object.values(row))
    }),
  )
  return cells
    .flat()
    .some((cell) =>
      cell instanceof Uint8Array ? Buffer.from(cell).includes(text) : String(cell).includes(text),
    )
}

const isPostgres = (databaseUrl: string): boolean => databaseUrl.startsWith('postgres:')

function fileOf(databaseUrl: string): string {
  if (!databaseUrl.startsWith('sqlite:')) throw new Error('this test is about the files of SQLite')
  return databaseUrl.slice('sqlite:'.length)
}
