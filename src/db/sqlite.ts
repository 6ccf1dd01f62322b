/** The embedded store: one SQLite file, a writer thread with group commit, and a reader thread. */
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Worker } from 'node:worker_threads'
import {
  type Db,
  type Kept,
  type Row,
  type Statement,
  StoreAway,
  StoreError,
  StoreUnusable,
  UnitRefused,
  type Value,
} from './db.ts'
import type {
  Query,
  QueryResult,
  Reply,
  Request,
  Table,
  UnitResult,
  WorkerOptions,
} from './sqlite-worker.ts'

/**
 * A message costs both threads more than most of the asks in it, so that those of one turn of the
 * event loop go over together, but no more than so many: the thread starts on the first while the
 * last requests of the turn are still being read.
 */
const ASKS_IN_MESSAGE = 8
/** Deleted bytes leave the write-ahead log within this time; well below the promised minute. */
const TRUNCATE_EVERY_MS = 20_000

type Unit = { statements: Statement[]; kept: Kept }

type Job<Ask, Answer> = {
  ask: Ask
  resolve: (answer: Answer) => void
  reject: (error: Error) => void
}

/**
 * Opens the file, made on the way if it is not there, readable by its owner alone. What was
 * deleted is in none of its files `truncateEveryMs` later.
 * @throws StoreUnusable with a sentence that says what to do.
 */
export async function openSqlite(
  file: string,
  { truncateEveryMs = TRUNCATE_EVERY_MS }: { truncateEveryMs?: number } = {},
): Promise<Db> {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new StoreUnusable(`The folder of ${file} cannot be made: ${reason(error)}.`)
  }
  refuseReadOnly(file)
  const writer = await startWorker({ file, role: 'writer', truncateEveryMs })
  // The log and its index got the mode that the file had when they were made.
  await Promise.all(
    ['', '-wal', '-shm'].map((part) => chmod(file + part, 0o600).catch(() => undefined)),
  )
  const reader = await startWorker({ file, role: 'reader', truncateEveryMs }).catch(
    async (error: unknown) => {
      await writer.stop()
      throw error
    },
  )
  const units = batcher<Unit, Row[][]>(async (batch) => {
    const isFlushed = batch.some(({ kept }) => kept === 'when resolved')
    const statements = batch.map((unit) => unit.statements)
    const reply = await writer.ask({ kind: 'units', units: statements, isFlushed })
    return reply.kind === 'units' ? reply.results.map(unitRows) : []
  })
  const queries = batcher<Query, Row[]>(async (batch) => {
    const reply = await reader.ask({ kind: 'queries', queries: batch })
    return reply.kind === 'queries' ? reply.results.map(queryRows) : []
  })

  async function run(text: string, values: Statement['values']): Promise<Row[]> {
    const reply = await writer.ask({ kind: 'run', text, values })
    if (reply.kind !== 'run') throw new StoreError('the store answered another question')
    const rows = queryRows(reply.result)
    if (rows instanceof Error) throw rows
    return rows
  }

  return {
    read: <T extends Row>(text: string, ...values: Statement['values']) =>
      queries.add({ text, values: compact(values) }) as Promise<T[]>,
    write: (statements, kept = 'when resolved') => {
      for (const { values } of statements) compact(values)
      return units.add({ statements, kept })
    },
    tx: (work) =>
      units.alone(async () => {
        await run('begin immediate', [])
        try {
          const result = await work({
            run: <T extends Row>(text: string, ...values: Statement['values']) =>
              run(text, values) as Promise<T[]>,
          })
          await run('commit', [])
          return result
        } catch (error) {
          await run('rollback', []).catch(() => undefined)
          throw error
        }
      }),
    close: async () => {
      await Promise.all([units.idle(), queries.idle()])
      await reader.stop()
      await writer.stop()
    },
  }
}

function unitRows(result: UnitResult): Row[][] | Error {
  if ('tables' in result) return result.tables.map(rowsOf)
  return 'refused' in result ? new UnitRefused(result.refused) : storeError(result.error)
}

function queryRows(result: QueryResult): Row[] | Error {
  return 'table' in result ? rowsOf(result.table) : storeError(result.error)
}

/** By SQLite's own sentences: what it cannot write for now is no fault of the statement. */
function storeError(message: string): StoreError {
  const isFull = /database or disk is full|disk I\/O error|database is locked/.test(message)
  return isFull ? new StoreAway(message) : new StoreError(message)
}

function rowsOf(table: Table | null): Row[] {
  if (table === null) return []
  const { columns, rows, byteCells, bytes } = table
  let at = 0
  for (const cell of byteCells) {
    const row = rows[Math.floor(cell / columns.length)] as Value[]
    const column = cell % columns.length
    const length = row[column] as number
    row[column] = bytes.subarray(at, at + length)
    at += length
  }
  return rows.map((values) => {
    const row: Row = {}
    for (let i = 0; i < columns.length; i++) row[columns[i] as string] = values[i] as Value
    return row
  })
}

/**
 * A view of a large buffer (a pooled Buffer, a socket's read buffer) would be copied to the other
 * thread with all of that buffer, so its own bytes are cut out first.
 */
function compact(values: Value[]): Value[] {
  for (let i = 0; i < values.length; i++) {
    const value = values[i]
    if (value instanceof Uint8Array && value.byteLength !== value.buffer.byteLength) {
      values[i] = new Uint8Array(value)
    }
  }
  return values
}

/**
 * Carries asks to a thread, several in a message. The thread shares one commit among all that has
 * come while it was busy: this is the group commit.
 */
function batcher<Ask, Answer>(
  send: (asks: Ask[]) => Promise<(Answer | Error)[]>,
): {
  add(ask: Ask): Promise<Answer>
  /** Runs `work` when nothing is under way; what is added meanwhile waits. */
  alone<T>(work: () => Promise<T>): Promise<T>
  idle(): Promise<void>
} {
  let waiting: Job<Ask, Answer>[] = []
  let underWay = 0
  let isExclusive = false
  let isScheduled = false
  let wakeups: (() => void)[] = []

  async function flush(): Promise<void> {
    if (isExclusive || waiting.length === 0) return
    const batch = waiting
    waiting = []
    underWay++
    try {
      const answers = await send(batch.map((job) => job.ask))
      for (const [i, job] of batch.entries()) settle(job, answers[i])
    } catch (error) {
      const failure = error instanceof Error ? error : new StoreError(String(error))
      for (const job of batch) job.reject(failure)
    }
    underWay--
    if (underWay === 0) wake()
  }

  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    // By then every request that had arrived has been read.
    setImmediate(() => {
      isScheduled = false
      void flush()
    })
  }

  function wake(): void {
    const woken = wakeups
    wakeups = []
    for (const resume of woken) resume()
  }

  function freed(): Promise<void> {
    return new Promise((resume) => wakeups.push(resume))
  }

  return {
    add: (ask) =>
      new Promise((resolve, reject) => {
        waiting.push({ ask, resolve, reject })
        if (waiting.length >= ASKS_IN_MESSAGE) void flush()
        else schedule()
      }),
    async alone(work) {
      // Looked at and taken without a wait between: of two woken at once, only one goes on.
      while (isExclusive || underWay > 0) await freed()
      isExclusive = true
      try {
        return await work()
      } finally {
        isExclusive = false
        wake()
        void flush()
      }
    },
    async idle() {
      while (isExclusive || underWay > 0 || waiting.length > 0) {
        void flush()
        await freed()
      }
    },
  }
}

function settle<Ask, Answer>(job: Job<Ask, Answer>, answer: Answer | Error | undefined): void {
  if (answer instanceof Error) job.reject(answer)
  else if (answer === undefined) job.reject(new StoreError('the store gave no answer'))
  else job.resolve(answer)
}

type Thread = { ask(request: Request): Promise<Reply>; stop(): Promise<void> }

function startWorker(options: WorkerOptions): Promise<Thread> {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const worker = new Worker(new URL(`./sqlite-worker.${extension}`, import.meta.url), {
    workerData: options,
  })
  return new Promise((resolve, reject) => {
    /** Whoever waits for an answer; the thread answers in the order it was asked. */
    const askers: { resolve: (reply: Reply) => void; reject: (error: Error) => void }[] = []
    let failure: Error | null = null

    const fail = (error: Error): void => {
      failure ??= new StoreError(`the store's thread ended: ${error.message}`)
      for (const asker of askers.splice(0)) asker.reject(failure)
      // Before it opened anything: whoever starts it must not wait for ever.
      reject(failure)
    }
    worker.on('error', fail)
    worker.on('exit', () => fail(new Error('it exited')))
    worker.on('message', (reply: Reply) => {
      if (reply.kind === 'opened') return resolve({ ask, stop })
      if (reply.kind === 'unusable') return reject(unusable(options.file, reply))
      askers.shift()?.resolve(reply)
    })

    function ask(request: Request): Promise<Reply> {
      return new Promise((onReply, onError) => {
        if (failure) return onError(failure)
        askers.push({ resolve: onReply, reject: onError })
        worker.postMessage(request)
      })
    }

    async function stop(): Promise<void> {
      await ask({ kind: 'close' })
      await worker.terminate()
    }
  })
}

/** Asked first: SQLite would open it all the same, and leave a log behind that is read-only too. */
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
      return new StoreUnusable(`There is no room on the disk of ${file}.`)
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

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
