/**
 * The thread that owns one SQLite connection. The writer runs whole batches of units in one
 * transaction, each under a savepoint of its own, so that one fsync pays for many and a refused
 * unit undoes nobody else's work. The reader answers queries on a snapshot of its own.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { Row, Statement, Value } from './db.ts'

export type WorkerOptions = { file: string; role: 'writer' | 'reader' }

export type Request =
  | { kind: 'units'; units: Statement[][] }
  | { kind: 'queries'; queries: Query[] }
  | { kind: 'run'; text: string; values: Value[] }
  | { kind: 'close' }

export type Query = { text: string; values: Value[] }

export type UnitResult = { rows: Row[][] } | { refused: number } | { error: string }
export type QueryResult = { rows: Row[] } | { error: string }
export type Reply =
  | { kind: 'units'; results: UnitResult[] }
  | { kind: 'queries'; results: QueryResult[] }
  | { kind: 'run'; result: QueryResult }
  | { kind: 'closed' }
  | { kind: 'opened' }
  | { kind: 'unusable'; code: string; message: string }

/** Deleted bytes leave the write-ahead log within this time; well below the promised minute. */
const TRUNCATE_EVERY_MS = 20_000
/** A damaged page in a larger file is found when it is read: checking it would delay the start. */
const CHECK_FILES_UP_TO_BYTES = 64 * 1024 * 1024
/** Other processes (operator commands) may hold the write lock for a moment. */
const BUSY_TIMEOUT_MS = 5_000
const CACHE_KIBIBYTES = 24_000

type Prepared = { statement: StatementSync; returnsRows: boolean }

const options = workerData as WorkerOptions
const port = parentPort
if (!port) throw new Error('sqlite-worker runs as a worker thread only')

let database: DatabaseSync
let hasWritten = false
const prepared = new Map<string, Prepared>()

try {
  database = open(options)
  port.postMessage({ kind: 'opened' } satisfies Reply)
} catch (error) {
  port.postMessage({ kind: 'unusable', ...describe(error) } satisfies Reply)
  process.exit()
}

port.on('message', (request: Request) => {
  switch (request.kind) {
    case 'units':
      return port.postMessage({ kind: 'units', results: runUnits(request.units) } satisfies Reply)
    case 'queries':
      return port.postMessage({
        kind: 'queries',
        results: request.queries.map(({ text, values }) => attempt(text, values)),
      } satisfies Reply)
    case 'run':
      hasWritten = true
      return port.postMessage({
        kind: 'run',
        result: attempt(request.text, request.values),
      } satisfies Reply)
    case 'close':
      if (options.role === 'writer') truncateLog()
      database.close()
      port.postMessage({ kind: 'closed' } satisfies Reply)
      port.close()
      clearInterval(truncation)
  }
})

const truncation = setInterval(() => {
  if (options.role === 'writer' && hasWritten) truncateLog()
}, TRUNCATE_EVERY_MS)

function open({ file, role }: WorkerOptions): DatabaseSync {
  const opened = new DatabaseSync(file)
  opened.exec(`pragma busy_timeout = ${BUSY_TIMEOUT_MS}; pragma cache_size = -${CACHE_KIBIBYTES}`)
  if (role === 'reader') {
    opened.exec('pragma query_only = on')
    return opened
  }
  opened.exec('pragma journal_mode = wal; pragma synchronous = full; pragma secure_delete = on')
  opened.exec('pragma foreign_keys = off; pragma temp_store = memory')
  const bytes = Number(
    opened
      .prepare('select page_count * page_size as bytes from pragma_page_count, pragma_page_size')
      .get()?.['bytes'] ?? 0,
  )
  if (bytes <= CHECK_FILES_UP_TO_BYTES) {
    const verdict = opened.prepare('pragma quick_check(1)').get()?.['quick_check']
    if (verdict !== 'ok') throw Object.assign(new Error(String(verdict)), { code: 'CORRUPT' })
  }
  // Takes the write lock for a moment: a file that cannot be written must stop the start.
  opened.exec('begin immediate; pragma user_version = 0; commit')
  return opened
}

function runUnits(units: Statement[][]): UnitResult[] {
  hasWritten = true
  try {
    database.exec('begin immediate')
    const results = units.map(runUnit)
    database.exec('commit')
    return results
  } catch (error) {
    if (database.isTransaction) database.exec('rollback')
    const message = describe(error).message
    return units.map(() => ({ error: message }))
  }
}

function runUnit(unit: Statement[]): UnitResult {
  database.exec('savepoint unit')
  const rows: Row[][] = []
  try {
    for (const [index, { text, values, expect }] of unit.entries()) {
      const done = run(text, values)
      if (expect !== undefined && done.count !== expect) {
        database.exec('rollback to unit; release unit')
        return { refused: index }
      }
      rows.push(done.rows)
    }
  } catch (error) {
    // A full disk or an I/O error ends the transaction of the whole batch, not of this unit.
    if (!database.isTransaction) throw error
    database.exec('rollback to unit; release unit')
    return { error: describe(error).message }
  }
  database.exec('release unit')
  return { rows }
}

function attempt(text: string, values: Value[]): QueryResult {
  try {
    return { rows: run(text, values).rows }
  } catch (error) {
    return { error: describe(error).message }
  }
}

function run(text: string, values: Value[]): { rows: Row[]; count: number } {
  const { statement, returnsRows } = prepare(text)
  if (!returnsRows) return { rows: [], count: Number(statement.run(...values).changes) }
  const rows = statement.all(...values) as Row[]
  return { rows, count: rows.length }
}

function prepare(text: string): Prepared {
  const known = prepared.get(text)
  if (known) return known
  // node:sqlite binds `?1` by position, not `$1`.
  const statement = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
  const entry = { statement, returnsRows: statement.columns().length > 0 }
  prepared.set(text, entry)
  return entry
}

/** Copies the log into the file and empties it, so that deleted bytes are in neither. */
function truncateLog(): void {
  try {
    const result = database.prepare('pragma wal_checkpoint(truncate)').get()
    hasWritten = result?.['busy'] !== 0
  } catch {
    // A reader or another process holds the log; the next turn tries again.
  }
}

function describe(error: unknown): { code: string; message: string } {
  const code = error instanceof Error && 'errcode' in error ? String(error.errcode) : ''
  const named = error instanceof Error && 'code' in error ? String(error.code) : ''
  return {
    code: named === 'CORRUPT' ? named : code,
    message: error instanceof Error ? error.message : String(error),
  }
}
