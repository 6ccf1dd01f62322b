/**
 * The thread that owns one SQLite connection. The writer runs a batch of units in one transaction, so that
 * they share one fsync, and a refused unit does not undo the others. The others run queries on their own
 * snapshot.
 */
import { createRequire } from 'node:module'
import type { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { type MessagePort, parentPort } from 'node:worker_threads'
import type { RowMap, Statement, Value } from '../db.ts'
import {
  createUnpacker,
  describe,
  failure,
  type NamedMap,
  packTable,
  type QueryResult,
  type Reply,
  type Request,
  type Table,
  transferred,
  type UnitResult,
  type WorkerOptions,
} from './message.ts'
import { BUSY_TIMEOUT_MS, openDatabase } from './open-database.ts'
import { createStatements, type Run, rowOf } from './statements.ts'

/** A commit stays short: its first unit waits for its last. */
const MAX_UNITS_IN_COMMIT = 512
/** Writes wait while the log is truncated, so a long read, such as a backup, must not delay that. */
const TRUNCATE_TIMEOUT_MS = 100

type Batch = { units: Statement[][]; isFlushed: boolean }

const port = mainThread()
let options: WorkerOptions
let database: DatabaseSync
let statement: Run
let hasWritten = false
/** Each file has a new packer on the other side, so it needs a new unpacker here. */
let unpack = createUnpacker()
/** Batches of units that are not committed yet. */
let waiting: Batch[] = []
/** `configure` turns it on. */
let isFlushing = true
let truncation: NodeJS.Timeout

port.on('message', (request: Request) => {
  if (request.kind !== 'units') return send([replyTo(request)])
  waiting.push({ units: unpack(request.message), isFlushed: request.isFlushed })
  if (waiting.length === 1) setImmediate(commit)
})

/**
 * Commits what has arrived. What arrives during a commit shares the next one, which has a turn of the event loop of its
 * own, so that timers and messages run in between.
 */
function commit(): void {
  const batches = firstBatches()
  flushCommits(batches.some(({ isFlushed }) => isFlushed))
  const results = runUnits(batches.flatMap(({ units }) => units))
  let at = 0
  send(
    batches.map(({ units }) => {
      at += units.length
      return { units: results.slice(at - units.length, at) }
    }),
  )
  if (waiting.length > 0) setImmediate(commit)
}

function firstBatches(): Batch[] {
  let units = 0
  const cut = waiting.findIndex((batch, place) => {
    units += batch.units.length
    return place > 0 && units > MAX_UNITS_IN_COMMIT
  })
  const first = cut === -1 ? waiting : waiting.slice(0, cut)
  waiting = waiting.slice(first.length)
  return first
}

/** A deferred commit reaches the disk with the next flushed one, because both are in the same log file. */
function flushCommits(isWanted: boolean): void {
  if (isWanted === isFlushing) return
  database.exec(`pragma synchronous = ${isWanted ? 'full' : 'normal'}`)
  isFlushing = isWanted
}

function send(replies: Reply[]): void {
  port.postMessage(replies, transferred(replies.flatMap(tablesOf)))
}

function replyTo(request: Exclude<Request, { kind: 'units' }>): Reply {
  switch (request.kind) {
    case 'open':
      return { opened: openFile(request.options) }
    case 'queries':
      // A transaction of its own, such as a migration.
      if (options.role === 'writer') {
        hasWritten = true
        if (!database.isTransaction) flushCommits(true)
      }
      return {
        queries: unpack(request.message).map(([query], at) => attempt(query, request.maps?.[at])),
      }
    case 'close':
      closeFile()
      return { closed: true }
  }
}

/** Null, or why it cannot be used. */
function openFile(opening: WorkerOptions): ReturnType<typeof describe> | null {
  options = opening
  unpack = createUnpacker()
  try {
    database = openDatabase(options)
    statement = createStatements(database)
  } catch (error) {
    return describe(error)
  }
  hasWritten = false
  isFlushing = true
  truncation = setInterval(() => {
    if (options.role === 'writer' && hasWritten) truncateLog()
  }, options.truncateEveryMs)
  return null
}

function closeFile(): void {
  clearInterval(truncation)
  if (options.role === 'writer') truncateLog()
  database.close()
}

function mainThread(): MessagePort {
  if (!parentPort) throw new Error('db/sqlite/worker.ts runs as a worker thread only')
  return parentPort
}

/** Thrown when a unit of a batch is refused after it has changed something, so that it must be undone. */
class MustIsolate extends Error {}

/**
 * Runs a batch in one transaction without savepoints: a unit that its first statement refuses has changed
 * nothing, so there is nothing to undo. If a unit is refused later, which is rare, the batch is rolled back
 * and run again, with a savepoint for each unit.
 */
function runUnits(units: Statement[][]): UnitResult[] {
  hasWritten = true
  try {
    return inTransaction(() => units.map(runUnit))
  } catch (error) {
    if (!(error instanceof MustIsolate)) return failed(units, error)
  }
  try {
    return inTransaction(() => units.map(runIsolated))
  } catch (error) {
    return failed(units, error)
  }
}

function inTransaction<T>(work: () => T): T {
  execute('begin immediate')
  try {
    const result = work()
    execute('commit')
    return result
  } catch (error) {
    if (database.isTransaction) execute('rollback')
    throw error
  }
}

function failed(units: Statement[][], error: unknown): UnitResult[] {
  const { message } = describe(error)
  // The whole batch failed, so it is no fault of a value.
  return units.map(() => ({ error: message }))
}

function runUnit(unit: Statement[]): UnitResult {
  const result = tryUnit(unit)
  if ('at' in result && result.at > 0) throw new MustIsolate()
  return result.outcome
}

function runIsolated(unit: Statement[]): UnitResult {
  execute('savepoint unit')
  const result = tryUnit(unit)
  if ('at' in result) execute('rollback to unit')
  execute('release unit')
  return result.outcome
}

/** `at` counts the statements that may have changed something before the unit stopped. */
function tryUnit(unit: Statement[]): { outcome: UnitResult; at?: number } {
  const tables: (Table | null)[] = []
  let hasRows = false
  for (let at = 0; at < unit.length; at++) {
    const { text, values, expect } = unit[at] as Statement
    let done: { table: Table | null; count: number }
    try {
      done = run(text, values)
    } catch (error) {
      // A full disk or an I/O error ends the transaction of the whole batch, not of this unit.
      if (!database.isTransaction) throw error
      // SQLite undoes a statement that fails. A value that JavaScript cannot hold fails after the statement.
      return { outcome: failure(error), at: isOfSqlite(error) ? at : at + 1 }
    }
    if (expect !== undefined && done.count !== expect) {
      return { outcome: { refused: at }, at: done.count === 0 ? at : at + 1 }
    }
    tables.push(done.table)
    hasRows ||= done.table !== null
  }
  return { outcome: hasRows ? { tables } : null }
}

const isOfSqlite = (error: unknown): boolean => error instanceof Error && 'errcode' in error

function attempt(
  query: { text: string; values: Value[] } | undefined,
  map?: NamedMap | null,
): QueryResult {
  try {
    return { table: query ? run(query.text, query.values, map).table : null }
  } catch (error) {
    return failure(error)
  }
}

function execute(text: string): void {
  statement(text, [])
}

function run(
  text: string,
  values: Value[],
  map?: NamedMap | null,
): { table: Table | null; count: number } {
  const { columns, rows, count } = statement(text, values)
  if (columns.length === 0) return { table: null, count }
  return { table: map ? mapped(map, columns, rows) : packTable(columns, rows), count }
}

// A dynamic import is asynchronous, and the replies of a thread keep the order of its requests.
const require = createRequire(import.meta.url)

/** The rows that the map makes of these. All of them have the columns of the first one. */
function mapped({ module, name, parameters }: NamedMap, columns: string[], rows: Value[][]): Table {
  const { [name]: map } = require(fileURLToPath(module)) as Record<string, RowMap['map']>
  if (map === undefined) throw new Error(`${module} exports no ${name}`)
  const made = map(
    rows.map((row) => rowOf(columns, row)),
    ...parameters,
  )
  for (const row of rows) for (const cell of row) if (cell instanceof Uint8Array) free(cell)
  const names = Object.keys(made[0] ?? {})
  return packTable(
    names,
    made.map((row) => names.map((column) => row[column] ?? null)),
  )
}

/** Gives memory back at once. The garbage collector would leave a long scan's to lie around, for many MiB. */
function free({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength >= FREED_FROM_BYTES) buffer.transfer(0)
}
const FREED_FROM_BYTES = 4 * 1024

function tablesOf(reply: Reply): (Table | null)[] {
  if ('queries' in reply) {
    return reply.queries.map((result) => ('table' in result ? result.table : null))
  }
  if (!('units' in reply)) return []
  return reply.units.flatMap((result) => (result && 'tables' in result ? result.tables : []))
}

/** Copies the log into the file and empties it, so that deleted bytes are in neither. */
function truncateLog(): void {
  try {
    database.exec(`pragma busy_timeout = ${TRUNCATE_TIMEOUT_MS}`)
    const result = database.prepare('pragma wal_checkpoint(truncate)').get()
    hasWritten = result?.busy !== 0
  } catch {
    // A reader or another process uses the log; the next interval tries again.
  } finally {
    database.exec(`pragma busy_timeout = ${BUSY_TIMEOUT_MS}`)
  }
}
