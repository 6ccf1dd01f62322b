/** The embedded store: one SQLite file, a writer thread with group commit, and a reader thread. */
import { accessSync, constants, existsSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import {
  type Answer,
  type Db,
  type MappedQuery,
  type Row,
  StoreUnusable,
  type Tx,
  type Unit,
  type Value,
} from '../db.ts'
import { makeFolderOf } from '../folder.ts'
import { type Batcher, createBatcher } from './batcher.ts'
import { CannotOpen, CLOSED, type Query, startThread, type Thread } from './thread.ts'

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
): Promise<Db> {
  makeFolderOf(file)
  refuseReadOnly(file)
  const start = (role: 'writer' | 'reader' | 'scanner', onEnded?: () => void): Promise<Thread> =>
    startThread({ file, role, truncateEveryMs }, onEnded).catch((error: unknown) => {
      throw error instanceof CannotOpen ? unusable(file, error) : error
    })
  const writer = await start('writer')
  // SQLite creates the log and its index with the file's mode at that time.
  await Promise.all(
    ['', '-wal', '-shm'].map((part) => chmod(file + part, 0o600).catch(() => undefined)),
  )
  const reader = await start('reader').catch(async (error: unknown) => {
    await writer.stop()
    throw error
  })
  // The writer puts everything that arrives during a commit into its next one: this is the group commit.
  const units = createBatcher<Unit, Answer>(writer.units)
  const queries = createBatcher<Query, Row[]>(reader.queries)
  let isClosed = false
  let scanning: Promise<Scanner> | null = null

  /**
   * The thread of long work, started when it is first needed, since many services never search, and again after
   * it has ended: no probe would notice that it is missing.
   */
  function scanner(): Promise<Scanner> {
    if (isClosed) return Promise.reject(CLOSED)
    const forget = (): void => {
      scanning = null
    }
    scanning ??= start('scanner', forget).then(
      (thread) => ({ thread, queries: createBatcher(thread.queries) }),
      (error: unknown) => {
        forget()
        throw error
      },
    )
    return scanning
  }

  /** A statement of a transaction, while no unit is under way. */
  async function run(text: string, ...values: Value[]): Promise<Row[]> {
    const [rows] = (await writer.queries([{ text, values }])) as [Row[] | Error]
    if (rows instanceof Error) throw rows
    return rows
  }

  return {
    engine: 'sqlite',
    read: <T extends Row>(text: string, ...values: Value[]) =>
      queries.add({ text, values }) as Promise<T[]>,
    readMapped: <T extends Row>(query: MappedQuery) => queries.add(query) as Promise<T[]>,
    scan: async <T extends Row>(query: MappedQuery) =>
      (await scanner()).queries.add(query) as Promise<T[]>,
    write: <Name extends string>(unit: Unit<Name>) => units.add(unit) as Promise<Answer<Name>>,
    tx: (work) =>
      units.alone(async () => {
        await run('begin immediate')
        try {
          const result = await work({ run: run as Tx['run'] })
          await run('commit')
          return result
        } catch (error) {
          await run('rollback').catch(() => undefined)
          throw error
        }
      }),
    close: async () => {
      if (isClosed) throw CLOSED
      isClosed = true
      const scans = await scanning?.catch(() => null)
      await Promise.all([units.idle(), queries.idle(), scans?.queries.idle()])
      // One that ends just now has nothing to write.
      await scans?.thread.stop().catch(() => undefined)
      try {
        await reader.stop()
      } finally {
        // Whatever became of the reader: the writer empties the log, and keeps the process running until then.
        await writer.stop()
      }
    },
  }
}

type Scanner = { thread: Thread; queries: Batcher<Query, Row[]> }

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
