/**
 * The vault: one SQLite file in the data folder, shared by all commands and hosts of a user, with the purchases that
 * are under way and what each day has spent. A transaction is all the locking that there is, and it ends with its
 * process.
 */
import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { messageOf } from '../../lib/errors.ts'
import { privateFolder } from '../data-folder.ts'
import { CliError } from '../exit.ts'

/** How long to wait for other processes, each of which holds the file for some milliseconds. */
const LOCK_MS = 10_000
const VERSION = 1

export type Place = { folder: string; now: () => number }

export const vaultFile = (folder: string): string => join(folder, 'vault.db')

/** The vault cannot be read or written, so no step that it should hold is taken. */
export class VaultError extends CliError {
  override name = 'VaultError'
}

/** Works on the vault in a transaction of its own, which is on disk when this returns. @throws VaultError */
export function inVault<T>({ folder }: Pick<Place, 'folder'>, work: (db: DatabaseSync) => T): T {
  const file = vaultFile(folder)
  let db: DatabaseSync | undefined
  try {
    privateFolder(folder)
    // SQLite would make it readable for others.
    closeSync(openSync(file, 'a', 0o600))
    db = new DatabaseSync(file, { timeout: LOCK_MS })
    // A rollback journal, since the home may be on a network. What is deleted is a secret, and is overwritten.
    db.exec('pragma journal_mode = delete; pragma synchronous = extra; pragma secure_delete = on')
    db.exec('begin immediate')
    prepare(db)
    const result = work(db)
    db.exec('commit')
    return result
  } catch (error) {
    // What the work says is no fault of the file.
    if (error instanceof Error && !isOfFile(error)) throw error
    throw new VaultError(
      `${file} cannot be read or written, so nothing is paid (${messageOf(error)}).`,
    )
  } finally {
    // Rolls back what was not committed.
    db?.close()
  }
}

/** Reads from the vault. Makes no file. */
export function fromVault<T>(
  place: Pick<Place, 'folder'>,
  none: T,
  read: (db: DatabaseSync) => T,
): T {
  return existsSync(vaultFile(place.folder)) ? inVault(place, read) : none
}

const SCHEMA = `
  create table purchase (
    key text primary key,
    -- What it is saved as, or what is extended.
    name text not null unique,
    revision integer not null,
    record text not null,
    -- The process that works on it, for its sake alone: a transaction decides what it may do.
    pid integer,
    written_at integer not null
  ) strict;
  -- A row is one invoice that one purchase handed to a wallet on one day. It only grows.
  create table spending (
    day text not null,
    key text not null,
    bolt11 text not null,
    payment_hash text not null,
    cost_msat integer not null check (cost_msat > 0),
    state text not null check (state in ('reserved', 'paid')),
    primary key (day, key, bolt11)
  ) strict;
  create table budget (only integer primary key check (only = 1), day text not null) strict;
  pragma user_version = ${VERSION}`

/** Makes the tables in an empty file, and refuses a damaged one. */
function prepare(db: DatabaseSync): void {
  const { user_version: version } = db.prepare('pragma user_version').get() ?? {}
  if (version === 0) {
    db.exec(SCHEMA)
    return
  }
  if (version !== VERSION) throw new DamagedVault('it is of another version of Mayfly')
  const { quick_check: verdict } = db.prepare('pragma quick_check(1)').get() ?? {}
  if (verdict !== 'ok') throw new DamagedVault('it is damaged')
}

class DamagedVault extends Error {}

const isOfFile = (error: Error): boolean =>
  error instanceof DamagedVault ||
  'syscall' in error ||
  ('code' in error && error.code === 'ERR_SQLITE_ERROR')
