/** What PostgreSQL needs besides the SQL that all engines share. */
import type { Dialect } from '../migrate.ts'

/** Must never change: all versions of Mayfly on a database must take the same lock. */
const MIGRATION_LOCK = 0x6d61_7966

/** A start that was ended in a migration must not hold its locks until the statement is through. */
const CLIENT_CHECK_MS = 1_000

export const POSTGRES: Dialect = {
  engine: 'postgres',
  translate: (sql) =>
    sql
      .replaceAll(/\bblob\b/g, 'bytea')
      .replaceAll(') without rowid', ')')
      .replaceAll('primary key autoincrement', 'generated always as identity primary key')
      .replaceAll(/\binteger\b/g, 'bigint'),
  findMigrations: `select 1 as found where to_regclass('migration') is not null`,
  turns: {
    // `transaction_timeout` is of PostgreSQL 17 and newer. A setting that is missing is no row. A server on Linux
    // can notice in the middle of a statement that its client is gone; others refuse to look.
    begin: `select set_config(name, '0', true) from pg_settings where name in ('statement_timeout', 'lock_timeout',
      'transaction_timeout', 'idle_in_transaction_session_timeout')
      union all select set_config('client_connection_check_interval', '${CLIENT_CHECK_MS}', true)
      where version() like '%linux%'`,
    tryClaim: `select 1 as claimed where pg_try_advisory_xact_lock(${MIGRATION_LOCK})`,
    claim: `select pg_advisory_xact_lock(${MIGRATION_LOCK})`,
    boundLockWaits: (ms) => `set local lock_timeout = ${ms}`,
  },
}
