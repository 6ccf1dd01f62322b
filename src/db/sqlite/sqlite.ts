/** The embedded store: one SQLite file, a writer thread with group commit, and a reader thread. */
import { accessSync, constants, existsSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
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
  ValueRefused,
} from '../db.ts'
import { makeFolderOf } from '../folder.ts'
import { byName, inARow, nameAt } from '../unit.ts'
import { type Batcher, createBatcher } from './batcher.ts'
import { createPacker, TRANSFER_FROM_BYTES } from './message.ts'
import { createFeeder, createRingMemory } from './ring.ts'
import type { NamedMap } from './row-maps.ts'
import { rowsOf } from './table.ts'
import type {
  Committed,
  QueryResult,
  Reply,
  Request,
  UnitResult,
  WorkerOptions,
} from './worker-messages.ts'
import { putBack, takeWorker } from './worker-pool.ts'

/**
 * The units and queries of one turn of the event loop are handed over together. With this limit, the thread
 * begins with the first ones while the last requests of the turn are still being read.
 */
const IN_BATCH = 32
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
  const ring = createRingMemory()
  const writer = await startThread({ file, role: 'writer', truncateEveryMs }, ring)
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
  const units = unitsOf(writer, ring)
  const queries = queriesOf(reader)
  /**
   * The thread of long work, started when it is first needed, since many services never search, and again after
   * it has ended: no probe would notice that it is missing.
   */
  let isClosed = false
  let scanning: Promise<{ thread: Thread; queries: Batcher<Query, Row[]> }> | null = null

  function scanner(): NonNullable<typeof scanning> {
    if (isClosed) return Promise.reject(CLOSED)
    scanning ??= startThread({ file, role: 'scanner', truncateEveryMs }).then(
      (thread) => {
        thread.onEnded(() => {
          scanning = null
        })
        return { thread, queries: queriesOf(thread) }
      },
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
    engine: 'sqlite',
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

type Query = Statement | MappedQuery

function queriesOf(thread: Thread): Batcher<Query, Row[]> {
  const pack = createPacker()
  const batcher = createBatcher<Query, Row[]>(IN_BATCH, (queries) => {
    const reason = thread.ended()
    if (reason) return reason
    const request: Request = {
      kind: 'queries',
      message: pack(queries.map((query) => [query])),
      maps: queries.some((query) => 'through' in query) ? queries.map(mapOf) : null,
    }
    thread.send(request, (reply) =>
      batcher.settle(queries.length, (index) => {
        if (reply instanceof Error) return reply
        return reply.kind === 'queries' ? queryRows(reply.results[index]) : NO_ANSWER
      }),
    )
    return queries.length
  })
  return batcher
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

/**
 * The thread puts everything that arrives while it is busy into its next commit: this is the group commit. It
 * looks for units in the ring itself, and must be woken only when it has found none.
 */
function unitsOf(thread: Thread, ring: SharedArrayBuffer): Batcher<Unit, Answer> {
  const feeder = createFeeder(ring)
  const pack = createPacker()
  const batcher = createBatcher<Unit, Answer>(IN_BATCH, (inputs) => {
    const reason = thread.ended()
    if (reason) return reason
    if (!feeder.hasRoom()) return 0
    const units = inputs.map(({ statements }) => inARow(statements))
    const isFlushed = inputs.some(({ durability }) => durability !== 'deferred')
    const count = feeder.put(units, isFlushed)
    if (count === 0) {
      // The first unit is too large for the ring.
      thread.post({ kind: 'units', message: pack(units.slice(0, 1)), isFlushed })
      feeder.putMessage()
    }
    if (feeder.mustWake()) thread.post({ kind: 'wake' })
    return Math.max(count, 1)
  })
  thread.onCommitted((results) => {
    if (results instanceof Error) return batcher.fail(results)
    const count = typeof results === 'number' ? results : results.length
    batcher.settle(count, (index, unit) =>
      unitAnswer(typeof results === 'number' ? null : results[index], unit),
    )
  })
  return batcher
}

type Thread = {
  /** Calls back in the order of the requests; with an Error once the thread has ended. */
  send(request: Request, onReply: (reply: Reply | Error) => void): void
  /** Sends a request that has no reply of its own. */
  post(request: Request): void
  /** Calls back with the results of each commit; with an Error once the thread has ended. */
  onCommitted(listener: (results: Committed | Error) => void): void
  /** Calls back when the thread has ended. */
  onEnded(listener: () => void): void
  /** Why the thread can take no more requests, or null. */
  ended(): Error | null
  stop(): Promise<void>
}

const replyOf = (thread: Thread, request: Request): Promise<Reply> =>
  new Promise((resolve, reject) => {
    thread.send(request, (reply) => (reply instanceof Error ? reject(reply) : resolve(reply)))
  })

/** @param ring the memory through which a writer takes units. */
async function startThread(
  options: WorkerOptions,
  ring: SharedArrayBuffer | null = null,
): Promise<Thread> {
  const worker = takeWorker()
  /** The callbacks of the requests without a reply, in order. */
  const pending: ((reply: Reply | Error) => void)[] = []
  let onCommitted: (results: Committed | Error) => void = () => undefined
  let onEnded: () => void = () => undefined
  let failure: Error | null = null
  let isStopped = false

  const fail = (error: Error): void => {
    // An 'exit' follows an 'error'.
    if (failure) return
    failure = new StoreError(`the store's thread ended: ${error.message}`)
    for (const onReply of pending.splice(0)) onReply(failure)
    onCommitted(failure)
    onEnded()
  }
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('it exited')))
  worker.on('message', (reply: Reply) => {
    if (reply.kind === 'units') onCommitted(reply.results)
    else pending.shift()?.(reply)
  })

  const post = (request: Request): void => worker.postMessage(request, handedOver(request))
  const ended = (): Error | null => failure ?? (isStopped ? CLOSED : null)
  const thread: Thread = {
    post,
    ended,
    onCommitted(listener) {
      onCommitted = listener
    },
    onEnded(listener) {
      onEnded = listener
    },
    send(request, onReply) {
      const reason = ended()
      if (reason) return onReply(reason)
      pending.push(onReply)
      post(request)
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
  const reply = await replyOf(thread, { kind: 'open', options, ring })
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
