/**
 * The embedded store: one SQLite file. A thread writes, with group commit; others, started when they are needed, do long
 * work. What is read by an index is read in the thread that asks, which takes less than to ask another one.
 */
import { accessSync, constants, existsSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import {
  type Answer,
  type Query,
  type Row,
  StoreUnusable,
  type Tx,
  type Unit,
  type UnmigratedDb,
  type Value,
} from '../db.ts'
import { makeFolderOf } from '../folder.ts'
import { type Batcher, createBatcher } from './batcher.ts'
import { describe, failure, type WorkerOptions } from './message.ts'
import { openDatabase } from './open-database.ts'
import { createStatements, rowOf } from './statements.ts'
import { CannotOpen, CLOSED, startThread, storeError, type Thread } from './thread.ts'

/** Deleted bytes leave the write-ahead log within this time, well below the promised minute. */
const TRUNCATE_EVERY_MS = 20_000

/**
 * Opens the file, readable for its owner only, and creates it if it is missing. Deleted data is in none of
 * its files `truncateEveryMs` later.
 * @throws StoreUnusable with a sentence that says what to do.
 */
export async function openSqlite(
  file: string,
  { truncateEveryMs = TRUNCATE_EVERY_MS }: { truncateEveryMs?: number } = {},
): Promise<UnmigratedDb> {
  makeFolderOf(file)
  refuseReadOnly(file)
  const start = (role: WorkerOptions['role'], onEnded?: () => void): Promise<Thread> =>
    startThread({ file, role, truncateEveryMs }, onEnded).catch((error: unknown) => {
      throw error instanceof CannotOpen ? unusable(file, error) : error
    })
  const writer = await start('writer')
  // SQLite creates the log and its index with the file's mode at that time.
  await Promise.all(
    ['', '-wal', '-shm'].map((part) => chmod(file + part, 0o600).catch(() => undefined)),
  )
  let reader: DatabaseSync
  try {
    reader = openDatabase({ file, role: 'reader' })
  } catch (error) {
    await writer.stop()
    throw unusable(file, describe(error))
  }
  const find = createStatements(reader)
  // The writer puts everything that arrives during a commit into its next one: this is the group commit.
  const units = createBatcher<Unit, Answer>(writer.units)
  let isClosed = false
  let turning: Promise<void> | null = null

  /** The next turn of the event loop. Without it, work that only reads would let nothing else run. */
  function nextTurn(): Promise<void> {
    turning ??= turn().finally(() => {
      turning = null
    })
    return turning
  }

  /**
   * A thread of long work, started when it is first needed, since many services never search, and again after it has
   * ended: no probe would notice that it is missing.
   */
  function lazily(role: 'reader' | 'scanner') {
    let starting: Promise<Working> | null = null
    const forget = (): void => {
      starting = null
    }
    function working(): Promise<Working> {
      if (isClosed) return Promise.reject(CLOSED)
      starting ??= start(role, forget).then(
        (thread) => ({ thread, queries: createBatcher(thread.queries) }),
        (error: unknown) => {
          forget()
          throw error
        },
      )
      return starting
    }
    return {
      ask: async (query: Query): Promise<Row[]> => (await working()).queries.add(query),
      async stop(): Promise<void> {
        const started = await starting?.catch(() => null)
        await started?.queries.idle()
        // One that ends just now has nothing to write.
        await started?.thread.stop().catch(() => undefined)
      },
    }
  }
  const [awaited, yielding] = [lazily('reader'), lazily('scanner')]

  /** A statement of a migration. */
  async function run(text: string, ...values: Value[]): Promise<Row[]> {
    const [rows] = (await writer.queries([{ text, values }])) as [Row[] | Error]
    if (rows instanceof Error) throw rows
    return rows
  }

  return {
    engine: 'sqlite',
    async read<T extends Row>(text: string, ...values: Value[]) {
      if (isClosed) throw CLOSED
      await nextTurn()
      try {
        const { columns, rows } = find(text, values)
        return rows.map((cells) => rowOf(columns, cells) as T)
      } catch (error) {
        throw storeError(failure(error))
      }
    },
    scan: <T extends Row>(query: Query) =>
      (query.isAwaited ? awaited : yielding).ask(query) as Promise<T[]>,
    write: <Name extends string>(unit: Unit<Name>) => units.add(unit) as Promise<Answer<Name>>,
    async tx(work) {
      await run('begin immediate')
      try {
        const result = await work({ run: run as Tx['run'] })
        await run('commit')
        return result
      } catch (error) {
        await run('rollback').catch(() => undefined)
        throw error
      }
    },
    close: async () => {
      if (isClosed) throw CLOSED
      isClosed = true
      await Promise.all([units.idle(), awaited.stop(), yielding.stop(), nextTurn()])
      reader.close()
      // Last, because it empties the log.
      await writer.stop()
    },
  }
}

type Working = { thread: Thread; queries: Batcher<Query, Row[]> }

/** Checked first, because SQLite would open the file and leave a read-only log behind. */
function refuseReadOnly(file: string): void {
  try {
    if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK)
  } catch {
    throw readOnly(file)
  }
}

function readOnly(file: string): StoreUnusable {
  return new StoreUnusable(
    `The database ${file} is read-only. Make it and its folder writable for this user.`,
  )
}

/** SQLite's result codes (sqlite.org/rescode.html) as sentences for the operator. */
function unusable(
  file: string,
  { code, message }: { code: string; message: string },
): StoreUnusable {
  switch (code === 'CORRUPT' ? 11 : Number(code) & 0xff) {
    case 8:
      return readOnly(file)
    case 10:
      return new StoreUnusable(`The database ${file} cannot be read or written: ${message}.`)
    case 11:
      return new StoreUnusable(
        `The database ${file} is damaged (${message.replaceAll(/\s+/g, ' ')}). Restore it from a backup; nothing was changed.`,
      )
    case 13:
      return new StoreUnusable(`The disk of ${file} is full.`)
    case 14:
      return new StoreUnusable(
        `The database ${file} cannot be opened. Check that the path is right and writable.`,
      )
    case 26:
      return new StoreUnusable(
        `${file} is not an SQLite database. Choose another MAYFLY_DATABASE_URL.`,
      )
    default:
      return new StoreUnusable(`The database ${file} cannot be used: ${message}.`)
  }
}
