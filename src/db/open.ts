/** Opens the store that a setting names with its engine, and migrates it. */
import { type Db, StoreAway, StoreError, StoreUnusable, type UnmigratedDb } from './db.ts'
import { type Dialect, type MigrateOptions, migrate, SQLITE } from './migrate.ts'
import type { PostgresOptions } from './postgres/postgres.ts'
import type { StoreUrl } from './server-urls.ts'

/** @throws StoreUnusable with a sentence that says what to do. */
export async function openStore(
  where: StoreUrl,
  options: PostgresOptions & MigrateOptions = {},
): Promise<Db> {
  // Only the chosen engine is loaded.
  if (where.kind === 'sqlite') {
    const { openSqlite } = await import('./sqlite/sqlite.ts')
    return migrated(await openSqlite(where.file), SQLITE, options)
  }
  const [{ openPostgres }, { POSTGRES }] = await Promise.all([
    import('./postgres/postgres.ts'),
    import('./postgres/dialect.ts'),
  ])
  return migrated(await openPostgres(where.url, options), POSTGRES, options)
}

/** Starts what the store of this URL will need, so that it is there when the store is opened. */
export async function prepareStore(where: StoreUrl): Promise<void> {
  if (where.kind !== 'sqlite') return
  const { startWorkerAhead } = await import('./sqlite/thread.ts')
  startWorkerAhead()
}

async function migrated(db: UnmigratedDb, dialect: Dialect, options: MigrateOptions): Promise<Db> {
  try {
    await migrate(db, dialect, options)
    return db
  } catch (error) {
    await db.close()
    throw error instanceof StoreError
      ? new StoreUnusable(`The database cannot be migrated: ${error.message}.`, {
          isAway: error instanceof StoreAway,
        })
      : error
  }
}
