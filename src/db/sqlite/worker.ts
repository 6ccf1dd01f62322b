/**
 * The thread that owns one SQLite connection. The writer runs a batch of units in one transaction, so that
 * they share one fsync, and a refused unit does not undo the others. The reader runs queries on its own
 * snapshot.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads'
import type { Statement, Value } from '../db.ts'
import { describe, failure, isOfSqlite } from './failure.ts'
import { createUnpacker, type Message } from './message.ts'
import { BUSY_TIMEOUT_MS, openDatabase } from './open-database.ts'
import { type Batch, createDrain, type Drain } from './ring.ts'
import { mapRows, type NamedMap } from './row-maps.ts'
import { pack, type Table, transferable } from './table.ts'
import type { QueryResult, Reply, Request, UnitResult, WorkerOptions } from './worker-messages.ts'

/** A commit stays short: its first unit waits for its last. */
const MAX_UNITS_IN_COMMIT = 512
/** Writes wait while the log is truncated, so a long read, such as a backup, must not delay that. */
const TRUNCATE_TIMEOUT_MS = 100

type Prepared = { statement: StatementSync; columns: string[] }

const port = mainThread()
let options: WorkerOptions
let database: DatabaseSync
let hasWritten = false
/** Each file has a new packer on the other side, so it needs a new unpacker here. */
let unpack = createUnpacker()
/** Only a writer has one. */
let drain: Drain
let isCommitScheduled = false
/** Batches that arrived as messages, until their turn comes. */
const posted: Batch[] = []
/** `configure` turns it on. */
let isFlushing = true
const prepared = new Map<string, Prepared>()
let truncation: NodeJS.Timeout

port.on('message', (request: Request) => {
  if (request.kind === 'units') posted.push(batchOf(request))
  if (request.kind !== 'units' && request.kind !== 'wake') return send(replyTo(request))
  if (!isCommitScheduled) commitUnits()
})

/**
 * Commits what is in the ring. What arrives during a commit shares the next one, which has a turn of the event
 * loop of its own, so that timers and messages run in between.
 */
function commitUnits(): void {
  isCommitScheduled = false
  commitOnce()
  if (drain.wait()) return
  isCommitScheduled = true
  setImmediate(commitUnits)
}

/** Commits what one commit takes of the ring. False if there is nothing. */
function commitOnce(): boolean {
  const batches = takeBatches()
  if (batches.length === 0) return false
  flushCommits(batches.some(({ isFlushed }) => isFlushed))
  const results = runUnits(batches.flatMap(({ units }) => units))
  drain.free()
  const hasNoRows = results.every((result) => result === null)
  send({ kind: 'units', results: hasNoRows ? results.length : results })
  return true
}

function takeBatches(): Batch[] {
  const batches: Batch[] = []
  for (let units = 0; units < MAX_UNITS_IN_COMMIT; ) {
    const next = drain.take()
    if (next === null) break
    const batch = next === 'message' ? takePosted() : next
    batches.push(batch)
    units += batch.units.length
  }
  return batches
}

/** The batch that the ring has announced. It was posted before that, but its event may not have run yet. */
function takePosted(): Batch {
  for (;;) {
    const batch = posted.shift()
    if (batch) return batch
    const received = receiveMessageOnPort(port) as { message: Request } | undefined
    if (received?.message.kind === 'units') posted.push(batchOf(received.message))
    else if (!received) throw new Error('the ring announced a batch that was not posted')
  }
}

const batchOf = ({ message, isFlushed }: { message: Message; isFlushed: boolean }): Batch => ({
  units: unpack(message),
  isFlushed,
})

/** A deferred commit reaches the disk with the next flushed one, because both are in the same log file. */
function flushCommits(isWanted: boolean): void {
  if (isWanted === isFlushing) return
  database.exec(`pragma synchronous = ${isWanted ? 'full' : 'normal'}`)
  isFlushing = isWanted
}

function send(reply: Reply): void {
  port.postMessage(reply, tablesOf(reply).flatMap(transferable))
}

function replyTo(request: Exclude<Request, { kind: 'units' | 'wake' }>): Reply {
  switch (request.kind) {
    case 'open':
      return openFile(request)
    case 'queries':
      return {
        kind: 'queries',
        results: unpack(request.message).map(([query], at) => attempt(query, request.maps?.[at])),
      }
    case 'run':
      hasWritten = true
      if (!database.isTransaction) flushCommits(true)
      return { kind: 'run', result: attempt(request) }
    case 'close':
      closeFile()
      return { kind: 'closed' }
  }
}

function openFile(request: { options: WorkerOptions; ring: SharedArrayBuffer | null }): Reply {
  options = request.options
  unpack = createUnpacker()
  if (request.ring) drain = createDrain(request.ring)
  try {
    database = openDatabase(options)
  } catch (error) {
    return { kind: 'unusable', ...describe(error) }
  }
  hasWritten = false
  isFlushing = true
  truncation = setInterval(() => {
    if (options.role === 'writer' && hasWritten) truncateLog()
  }, options.truncateEveryMs)
  return { kind: 'opened' }
}

function closeFile(): void {
  clearInterval(truncation)
  if (options.role === 'writer') {
    // No message announces the units that a scheduled commit would find. Their reply must be this store's.
    while (commitOnce());
    truncateLog()
  }
  prepared.clear()
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
  prepare(text).statement.run()
}

function run(
  text: string,
  values: Value[],
  map?: NamedMap | null,
): { table: Table | null; count: number } {
  const entry = prepare(text)
  const { statement } = entry
  if (entry.columns.length === 0) {
    return { table: null, count: Number(statement.run(...values).changes) }
  }
  const rows = statement.all(...values) as unknown as Value[][]
  // SQLite prepares a statement anew when a migration has changed its table, here or in another process.
  if (rows[0] && rows[0].length !== entry.columns.length) entry.columns = columnsOf(statement)
  const { columns } = entry
  const cells = map ? mapRows(map, { columns, rows }) : { columns, rows }
  return { table: pack(cells), count: rows.length }
}

function tablesOf(reply: Reply): (Table | null)[] {
  if (reply.kind === 'queries') return reply.results.map(tableOf)
  if (reply.kind !== 'units' || typeof reply.results === 'number') return []
  return reply.results.flatMap((result) => (result && 'tables' in result ? result.tables : []))
}

const tableOf = (result: QueryResult): Table | null => ('table' in result ? result.table : null)

function prepare(text: string): Prepared {
  const known = prepared.get(text)
  if (known) return known
  // node:sqlite binds `?1` by position, not `$1`.
  const statement = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
  statement.setReturnArrays(true)
  const entry = { statement, columns: columnsOf(statement) }
  prepared.set(text, entry)
  return entry
}

const columnsOf = (statement: StatementSync): string[] =>
  statement.columns().map(({ name }) => name)

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
