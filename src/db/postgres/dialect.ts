/** What PostgreSQL needs besides the SQL that all engines share. */
import type { Dialect } from '../migrate.ts'

/** Must never change: all versions of Mayfly on a database must take the same lock. */
const MIGRATION_LOCK = 0x6d61_7966

export const POSTGRES: Dialect = {
  engine: 'postgres',
  translate: (sql) => sql.replaceAll(/\bblob\b/g, 'bytea').replaceAll(/\binteger\b/g, 'bigint'),
  findMigrations: `select 1 as found where to_regclass('migration') is not null`,
  claim: [
    // A migration may take long, and the other instances wait for it.
    'set local statement_timeout = 0',
    'set local lock_timeout = 0',
    `select pg_advisory_xact_lock(${MIGRATION_LOCK})`,
  ],
  tune: ({ hot, bytes }) => [
    // Free space in a page lets an updated row stay there, without new index entries. An early vacuum
    // removes dead rows while the tables are small.
    ...hot.map(
      (table) =>
        `alter table ${table} set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02)`,
    ),
    ...bytes.map(
      (table) =>
        `alter table ${table} set (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02)`,
    ),
  ],
}
