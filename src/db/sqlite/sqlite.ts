/** The embedded store: one SQLite file, a writer thread with group commit, and a reader thread. */
import { accessSync, constants, existsSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { coalesce } from '../coalesce.ts'
import {
  type Answer,
  type Db,
  type MappedQuery,
  type Row,
  type Statement,
  StoreAway,
  StoreError,
  StoreUnusable,
  type Unit,
  UnitRefused,
  type Value,
  ValueRefused,
} from '../db.ts'
import { makeFolderOf } from '../folder.ts'
import { byName, inARow, nameAt } from '../unit.ts'
import { createPacker, putBytes, TRANSFER_FROM_BYTES } from './message.ts'
import type { NamedMap } from './row-maps.ts'
import type { QueryResult, Reply, Request, Table, UnitResult, WorkerOptions } from './worker.ts'
import { putBack, takeWorker } from './worker-pool.ts'

/**
 * A message costs both threads more than most units, so the units of one turn of the event loop share
 * messages. With this limit, the thread begins with the first units while the last requests of the turn are
 * still being read.
 */
const UNITS_IN_MESSAGE = 8
/** Deleted bytes leave the write-ahead log within this time, well below the promised minute. */
const TRUNCATE_EVERY_MS = 20_000

/** A unit or a query, and the promise of its outcome. */
type Job<Input, Outcome> = {
  input: Input
  resolve: (outcome: Outcome) => void
  reject: (error: Error) => void
}

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
  const writer = await startThread({ file, role: 'writer', truncateEveryMs })
  // SQLite creates the log and its index with the file's mode at that time.
  await Promise.all(
    ['', '-wal', '-shm'].map((part) => chmod(file + part, 0o600).catch(() => undefined)),
  )
  const reader = await startThread({ file, role: 'reader', truncateEveryMs }).catch(
    async (error: unknown) => {
      await writer.stop()
      throw error
    },
  )
  const packUnits = createPacker()
  const units = batcher<Unit, Answer>(writer, {
    request: (batch) => ({
      kind: 'units',
      message: packUnits(batch.map(({ statements }) => inARow(statements))),
      isFlushed: batch.some(({ durability }) => durability !== 'deferred'),
    }),
    outcome: (reply, place, unit) =>
      reply.kind === 'units' ? unitAnswer(reply.results[place], unit) : NO_ANSWER,
  })
  const queries = queriesOf(reader)
  /** The thread of long work, started when it is first needed, since many services never search. */
  let isClosed = false
  let scanning: Promise<{ thread: Thread; queries: Batcher<Query, Row[]> }> | null = null

  function scanner(): NonNullable<typeof scanning> {
    if (isClosed) return Promise.reject(CLOSED)
    scanning ??= startThread({ file, role: 'scanner', truncateEveryMs }).then(
      (thread) => ({ thread, queries: queriesOf(thread) }),
      (error: unknown) => {
        scanning = null
        throw error
      },
    )
    return scanning
  }

  async function run(text: string, values: Statement['values']): Promise<Row[]> {
    const reply = await replyOf(writer, { kind: 'run', text, values })
    const rows = reply.kind === 'run' ? queryRows(reply.result) : NO_ANSWER
    if (rows instanceof Error) throw rows
    return rows
  }

  return {
    read: <T extends Row>(text: string, ...values: Statement['values']) =>
      queries.add({ text, values }) as Promise<T[]>,
    readMapped: <T extends Row>(query: MappedQuery) => queries.add(query) as Promise<T[]>,
    scan: async <T extends Row>(query: MappedQuery) =>
      (await scanner()).queries.add(query) as Promise<T[]>,
    write: <Name extends string>(unit: Unit<Name>) => units.add(unit) as Promise<Answer<Name>>,
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
      isClosed = true
      const scans = await scanning?.catch(() => null)
      await Promise.all([units.idle(), queries.idle(), scans?.queries.idle()])
      await scans?.thread.stop()
      await reader.stop()
      await writer.stop()
    },
  }
}

type Query = Statement | MappedQuery

function queriesOf(thread: Thread): Batcher<Query, Row[]> {
  const pack = createPacker()
  return batcher<Query, Row[]>(thread, {
    request: (batch) => ({
      kind: 'queries',
      message: pack(batch.map((query) => [query])),
      maps: batch.some((query) => 'through' in query) ? batch.map(mapOf) : null,
    }),
    outcome: (reply, place) =>
      reply.kind === 'queries' ? queryRows(reply.results[place]) : NO_ANSWER,
  })
}

function mapOf(query: Query): NamedMap | null {
  if (!('through' in query)) return null
  const { through, parameters } = query
  return { module: through.module, name: through.name, parameters }
}

const NO_ANSWER = new StoreError('the store gave no answer')
const CLOSED = new StoreError('the store is closed')

function unitAnswer(result: UnitResult | undefined, { statements }: Unit): Answer | Error {
  if (result === undefined) return NO_ANSWER
  if (result === null) return byName(statements, null)
  if ('tables' in result) return byName(statements, result.tables.map(rowsOf))
  if ('refused' in result) return new UnitRefused(nameAt(statements, result.refused))
  return storeError(result)
}

function queryRows(result: QueryResult | undefined): Row[] | Error {
  if (result === undefined) return NO_ANSWER
  return 'table' in result ? rowsOf(result.table) : storeError(result)
}

/** Classifies by SQLite's messages: a store that cannot be written now is no fault of the statement. */
function storeError({ error, isOfValue }: { error: string; isOfValue?: boolean }): StoreError {
  if (isOfValue) return new ValueRefused(error)
  const isFull = /database or disk is full|disk I\/O error|database is locked/.test(error)
  return isFull ? new StoreAway(error) : new StoreError(error)
}

function rowsOf(table: Table | null): Row[] {
  if (table === null) return []
  const { columns, cells, byteCells, bytes } = table
  putBytes(cells, byteCells, bytes)
  const rows: Row[] = []
  for (let at = 0; at < cells.length; at += columns.length) {
    const row: Row = {}
    for (let i = 0; i < columns.length; i++) row[columns[i] as string] = cells[at + i] as Value
    rows.push(row)
  }
  return rows
}

type Batcher<Input, Outcome> = {
  add(input: Input): Promise<Outcome>
  /** Runs `work` while the thread has nothing else to do. Inputs added meanwhile wait. */
  alone<T>(work: () => Promise<T>): Promise<T>
  idle(): Promise<void>
}

/**
 * Sends units to a thread, several in a message. The thread puts everything that arrived while it was
 * busy into one commit: this is the group commit.
 */
function batcher<Input, Outcome>(
  thread: Thread,
  {
    request,
    outcome,
  }: {
    request: (batch: Input[]) => Request
    /** The outcome of the input at this index of the batch. */
    outcome: (reply: Reply, index: number, input: Input) => Outcome | Error
  },
): Batcher<Input, Outcome> {
  let waiting: Job<Input, Outcome>[] = []
  let underWay = 0
  let isExclusive = false
  const schedule = coalesce(flush)
  let wakeups: (() => void)[] = []

  function flush(): void {
    if (isExclusive || waiting.length === 0) return
    const batch = waiting
    waiting = []
    underWay++
    thread.send(request(batch.map(({ input }) => input)), (reply) => {
      for (let index = 0; index < batch.length; index++) {
        const job = batch[index] as Job<Input, Outcome>
        const done = reply instanceof Error ? reply : outcome(reply, index, job.input)
        if (done instanceof Error) job.reject(done)
        else job.resolve(done)
      }
      underWay--
      if (underWay === 0) wake()
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
    add: (input) =>
      new Promise((resolve, reject) => {
        waiting.push({ input, resolve, reject })
        if (waiting.length >= UNITS_IN_MESSAGE) flush()
        else schedule()
      }),
    async alone(work) {
      // Checked and set without an await between: of two that wake together, one continues.
      while (isExclusive || underWay > 0) await freed()
      isExclusive = true
      try {
        return await work()
      } finally {
        isExclusive = false
        wake()
        flush()
      }
    },
    async idle() {
      for (;;) {
        // A thread that has ended answers at once, so there may be nothing left to wait for.
        flush()
        if (!isExclusive && underWay === 0 && waiting.length === 0) return
        await freed()
      }
    },
  }
}

type Thread = {
  /** Calls back in the order of the requests; with an Error once the thread has ended. */
  send(request: Request, onReply: (reply: Reply | Error) => void): void
  stop(): Promise<void>
}

const replyOf = (thread: Thread, request: Request): Promise<Reply> =>
  new Promise((resolve, reject) => {
    thread.send(request, (reply) => (reply instanceof Error ? reject(reply) : resolve(reply)))
  })

async function startThread(options: WorkerOptions): Promise<Thread> {
  const worker = takeWorker()
  /** The callbacks of the requests without a reply, in order. */
  const pending: ((reply: Reply | Error) => void)[] = []
  let failure: Error | null = null
  let isStopped = false

  const fail = (error: Error): void => {
    failure ??= new StoreError(`the store's thread ended: ${error.message}`)
    for (const onReply of pending.splice(0)) onReply(failure)
  }
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('it exited')))
  worker.on('message', (replies: Reply[]) => {
    for (const reply of replies) pending.shift()?.(reply)
  })

  const thread: Thread = {
    send(request, onReply) {
      if (failure || isStopped) return onReply(failure ?? CLOSED)
      pending.push(onReply)
      worker.postMessage(request, handedOver(request))
    },
    async stop() {
      const closed = replyOf(thread, { kind: 'close' })
      // `close` is the last request of this store: the reply to a later one would reach the next.
      isStopped = true
      await closed
      // A scanner gives way for good, so no other store may have its thread.
      if (options.role === 'scanner') await worker.terminate()
      else await putBack(worker)
    },
  }
  const reply = await replyOf(thread, { kind: 'open', options })
  if (reply.kind !== 'unusable') return thread
  if (options.role === 'scanner') await worker.terminate()
  else await putBack(worker)
  throw unusable(options.file, reply)
}

function handedOver(request: Request): ArrayBuffer[] {
  if (!('message' in request)) return []
  const { buffer } = request.message.bytes
  return buffer.byteLength >= TRANSFER_FROM_BYTES ? [buffer] : []
}

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
