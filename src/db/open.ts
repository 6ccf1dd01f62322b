/** Opens the store that a setting names with its engine, and migrates it. */
import { type Db, StoreError, StoreUnusable } from './db.ts'
import { type Dialect, migrate, SQLITE } from './migrate.ts'
import { POSTGRES } from './postgres/dialect.ts'
import { openPostgres, type PostgresOptions } from './postgres/postgres.ts'
import { openSqlite } from './sqlite/sqlite.ts'

/** As `config.ts` reads it. */
export type StoreUrl = { kind: 'sqlite'; file: string } | { kind: 'postgres'; url: string }

/** @throws StoreUnusable with a sentence that says what to do. */
export async function openStore(where: StoreUrl, options: PostgresOptions = {}): Promise<Db> {
  return where.kind === 'postgres'
    ? migrated(await openPostgres(where.url, options), POSTGRES)
    : migrated(await openSqlite(where.file), SQLITE)
}

async function migrated(db: Db, dialect: Dialect): Promise<Db> {
  try {
    await migrate(db, dialect)
    return db
  } catch (error) {
    await db.close()
    throw error instanceof StoreError
      ? new StoreUnusable(`The database cannot be migrated: ${error.message}.`)
      : error
  }
}
