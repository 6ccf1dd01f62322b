/**
 * Copies a live SQLite store, and restores a store from a copy. Both write a draft, check it, and link it to
 * its name at the end, so that a file under the final name is always complete.
 */
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  rmSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { messageOf } from '../../lib/errors.ts'
import { type Statement, StoreUnusable } from '../db.ts'
import { makeFolderOf } from '../folder.ts'
import { openStore } from '../open.ts'

/** The service holds the write lock only for moments; its start holds it for a migration. */
const BUSY_TIMEOUT_MS = 10_000
/** The suffixes of the files that SQLite keeps beside a database. */
const COMPANIONS = ['-wal', '-shm', '-journal']

export type Copied = { orders: number }

/**
 * Copies the store as it is at one moment, even while a service uses it. The copy contains no deleted data.
 * @throws StoreUnusable with a sentence for the operator.
 */
export async function backupSqlite(file: string, target: string): Promise<Copied> {
  return throughDraft(target, (draft) => {
    const source = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
    try {
      ordersIn(source, file)
      source.prepare('vacuum into ?').run(draft)
    } finally {
      source.close()
    }
    return checked(draft)
  })
}

/**
 * Checks a copy, migrates it as a start would, and puts it at the store's place. `afterwards` changes what is not to
 * be as it was.
 * @throws StoreUnusable with a sentence for the operator; then no file is left behind.
 */
export async function restoreSqlite(
  copy: string,
  file: string,
  afterwards: Statement[],
): Promise<Copied> {
  const existing = [file, ...COMPANIONS.map((part) => file + part)].find((name) => existsSync(name))
  if (existing) {
    throw new StoreUnusable(
      `${existing} exists. Stop the service that uses it, and move ${file}, its -wal and its -shm away.`,
    )
  }
  makeFolderOf(file)
  return throughDraft(file, async (draft) => {
    copyFileSync(copy, draft)
    const copied = checked(draft)
    // Like a start, this refuses a copy that a newer Mayfly wrote.
    const store = await openStore({ kind: 'sqlite', file: draft })
    try {
      await store.write({ lockKey: 'restore', statements: { afterwards } })
    } finally {
      await store.close()
    }
    return copied
  })
}

/** The sentence contains SQLite's own message about a file that it cannot read. */
function checked(file: string): Copied {
  try {
    const database = new DatabaseSync(file)
    try {
      const [verdict] = database.prepare('pragma integrity_check(1)').all()
      if (verdict?.integrity_check !== 'ok') {
        throw new StoreUnusable(`The copy is damaged (${String(verdict?.integrity_check)}).`)
      }
      return { orders: ordersIn(database, 'the copy') }
    } finally {
      database.close()
    }
  } catch (error) {
    if (error instanceof StoreUnusable) throw error
    throw new StoreUnusable(`The copy cannot be read: ${messageOf(error)}.`)
  }
}

function ordersIn(database: DatabaseSync, name: string): number {
  const [known] = database
    .prepare(`select count(*) as tables from sqlite_schema where name = 'purchase_order'`)
    .all()
  if (known?.tables !== 1) throw new StoreUnusable(`There is no store of Mayfly in ${name}.`)
  const [row] = database.prepare('select count(*) as orders from purchase_order').all()
  return Number(row?.orders)
}

async function throughDraft<T>(
  target: string,
  make: (draft: string) => T | Promise<T>,
): Promise<T> {
  if (existsSync(target)) throw new StoreUnusable(`${target} exists and is not overwritten.`)
  const draft = `${target}.draft`
  try {
    // Created empty, and readable for its owner only, before SQLite writes to it.
    closeSync(openSync(draft, constants.O_CREAT | constants.O_EXCL | constants.O_RDWR, 0o600))
  } catch (error) {
    throw new StoreUnusable(`${draft} cannot be made: ${messageOf(error)}.`)
  }
  try {
    // SQLite would play the log of a draft that was killed into this one.
    removeCompanions(draft)
    const made = await make(draft)
    flush(draft)
    linkSync(draft, target)
    flush(dirname(target))
    return made
  } catch (error) {
    if (error instanceof StoreUnusable) throw error
    throw new StoreUnusable(`${target} cannot be written: ${messageOf(error)}.`)
  } finally {
    rmSync(draft, { force: true })
    removeCompanions(draft)
  }
}

function removeCompanions(file: string): void {
  for (const part of COMPANIONS) rmSync(file + part, { force: true })
}

function flush(name: string): void {
  const handle = openSync(name, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
