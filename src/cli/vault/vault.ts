/**
 * The vault: one SQLite file in the data folder, shared by all commands and hosts of a user, with all that is saved:
 * capabilities, purchases under way, what each day has spent, and how far a command got. A transaction is all the locking that there is, and
 * it ends with its process.
 */
import { accessSync, closeSync, constants, mkdirSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { codeOf, messageOf } from '../../lib/errors.ts'
import { CliError } from '../exit.ts'

/** How long to wait for other processes, each of which holds the file for some milliseconds. */
const LOCK_MS = 10_000
const VERSION = 5

export type Place = {
  folder: string
  /** The transaction that is under way, for what is part of it. */
  db?: DatabaseSync
}

export const vaultFile = (folder: string): string => join(folder, 'vault.db')

/** The vault cannot be read or written, so no step that it should hold is taken. */
export class VaultError extends CliError {
  override name = 'VaultError'
}

/**
 * Works on the vault in a transaction, which is on disk when this returns, or in the one that is under way.
 * @throws VaultError
 */
export const inVault = <T>({ folder, db }: Place, work: (db: DatabaseSync) => T): T =>
  db === undefined ? transaction(folder, work) : work(db)

/** Reads from the vault, even where it can only be read. Makes no file. @throws VaultError */
export function fromVault<T>({ folder, db }: Place, none: T, read: (db: DatabaseSync) => T): T {
  if (db !== undefined) return read(db)
  return isThere(folder) ? transaction(folder, read, { isReadOnly: !isWritable(folder) }) : none
}

/** What one statement reads. Nothing where there is no vault. */
export const rowsIn = (place: Place, sql: string, values: Values = {}): Row[] =>
  fromVault(place, [], (db) => db.prepare(sql).all(values))

/** Changes the vault by one statement. How many rows that are. */
export const change = (place: Place, sql: string, values: Values): number =>
  inVault(place, (db) => Number(db.prepare(sql).run(values).changes))

type Row = Record<string, unknown>
type Values = Record<string, SQLInputValue>

function transaction<T>(
  folder: string,
  work: (db: DatabaseSync) => T,
  { isReadOnly = false } = {},
): T {
  const file = vaultFile(folder)
  let db: DatabaseSync | undefined
  try {
    if (!isReadOnly) makePrivate(folder)
    db = new DatabaseSync(file, { timeout: LOCK_MS, readOnly: isReadOnly })
    // A rollback journal, since the home may be on a network. What is deleted is a secret, and is overwritten.
    db.exec('pragma journal_mode = delete; pragma secure_delete = on; pragma synchronous = extra')
    db.exec(isReadOnly ? 'begin' : 'begin immediate')
    prepare(db)
    const result = work(db)
    db.exec('commit')
    return result
  } catch (error) {
    // What the work says is no fault of the file.
    if (error instanceof Error && !isOfFile(error)) throw error
    throw unusable(folder, error)
  } finally {
    // Rolls back what was not committed.
    db?.close()
  }
}

/** SQLite would make the file readable for others. */
function makePrivate(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  closeSync(openSync(vaultFile(folder), 'a', 0o600))
}

/** What cannot be looked at is not taken for nothing. */
function isThere(folder: string): boolean {
  try {
    statSync(vaultFile(folder))
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw unusable(folder, error)
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(vaultFile(folder), constants.W_OK)
    return true
  } catch {
    return false
  }
}

function unusable(folder: string, error: unknown): VaultError {
  return new VaultError(
    `${vaultFile(folder)} cannot be read or written, so nothing more is paid, and nothing in it is changed (${messageOf(error)}).`,
  )
}

const SCHEMA = `
  -- The text is what "mayfly export" writes; the state what its service said last, and when.
  create table capability (
    name text primary key, text text not null, state text, said_at integer
  ) strict;
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
  -- How far "catch listen --forward" got: the last event that is not sent again, and the one without an answer. A
  -- listener writes under a token of its own, which the next one replaces. The tools of hosts have handed over all up to "seen".
  create table listening (
    inbox text primary key, listener text, last integer, unanswered integer, seen integer not null default 0
  ) strict;
  -- Events beyond that, before which a filter has passed over others.
  create table seen (
    inbox text, sequence integer, primary key (inbox, sequence)
  ) strict, without rowid;
  -- Events that a receiver did not take.
  create table failed (
    inbox text, sequence integer, primary key (inbox, sequence)
  ) strict, without rowid;
  -- What reads of whispers brought, encrypted, until it is opened.
  create table unopened (
    id integer primary key, public_id text not null, envelope blob not null
  ) strict;
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

/** No process works longer than this on something without writing to it. Its id may be another's by then. */
const HELD_MS = 3_600_000

/** The process that wrote this, if it is another one that is alive. Null for what is older than any work takes. */
export function otherProcess(pid: unknown, writtenAt: unknown): number | null {
  const isRecent = Number(writtenAt) > Date.now() - HELD_MS
  if (!isRecent || typeof pid !== 'number' || pid === process.pid) return null
  try {
    process.kill(pid, 0)
    return pid
  } catch (error) {
    return codeOf(error) === 'EPERM' ? pid : null
  }
}
