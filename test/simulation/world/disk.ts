/**
 * The store of a run: SQLite in memory with the service's own schema and statements. Every call of a process
 * takes a while to arrive and to be answered, calls overtake each other, and a process that dies in between
 * never learns what became of them. A loss of power undoes what was not flushed.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import {
  type Answer,
  type Db,
  type MappedQuery,
  type Row,
  type Statement,
  StoreAway,
  StoreError,
  type Unit,
  UnitRefused,
  type Value,
  ValueRefused,
} from '../../../src/db/db.ts'
import { failure } from '../../../src/db/sqlite/failure.ts'
import { byName, inARow, nameAt } from '../../../src/db/unit.ts'
import { type Process, world } from './world.ts'

export type Disk = {
  connect(process: Process): Db
  /** Rows as they are now, for the books. */
  read(text: string, ...values: Value[]): Row[]
  /** Undoes what no flush has written. All processes must be dead. */
  cutPower(): void
  /** How often a call finds no store, from 0 to 1. Half of those writes are committed nevertheless. */
  failing: number
  close(): void
}

/** Milliseconds that a call takes, in each direction: mostly short, seldom long. */
function latency(): number {
  const { random } = world().scheduler
  const draw = random.next()
  if (draw < 0.8) return random.next() * 2
  if (draw < 0.98) return random.next() * 30
  return random.next() * 600
}

type Prepared = { statement: StatementSync; hasRows: boolean }

/** @param image an empty store that has its tables. */
export function openDisk(image: Uint8Array): Disk {
  const database = open(image)
  const prepared = new Map<string, Prepared>()

  function prepare(text: string): Prepared {
    const known = prepared.get(text)
    if (known) return known
    const statement = database.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
    const entry = { statement, hasRows: statement.columns().length > 0 }
    prepared.set(text, entry)
    return entry
  }

  function execute(text: string, values: Value[]): { rows: Row[]; count: number } {
    const { statement, hasRows } = prepare(text)
    if (!hasRows) return { rows: [], count: Number(statement.run(...values).changes) }
    const rows = statement.all(...values) as Row[]
    return { rows, count: rows.length }
  }

  const rows = (text: string, values: Value[]): Row[] => execute(text, values).rows

  /** @throws UnitRefused, ValueRefused */
  function runUnit(unit: Unit): Answer {
    const statements = inARow(unit.statements)
    database.exec('savepoint unit')
    try {
      const results = statements.map((each, at) =>
        runStatement(each, () => nameAt(unit.statements, at)),
      )
      database.exec('release unit')
      return byName(unit.statements, results)
    } catch (error) {
      database.exec('rollback to unit; release unit')
      throw error
    }
  }

  function runStatement({ text, values, expect }: Statement, name: () => string): Row[] {
    const done = executed(text, values)
    if (expect !== undefined && done.count !== expect) throw new UnitRefused(name())
    return done.rows
  }

  function executed(text: string, values: Value[]): ReturnType<typeof execute> {
    try {
      return execute(text, values)
    } catch (error) {
      const { error: message, isOfValue } = failure(error)
      throw isOfValue ? new ValueRefused(message) : new StoreError(message)
    }
  }

  function flush(): void {
    database.exec('commit; begin')
  }

  /** One call of a process: it arrives, is run, and is answered. */
  function call<T>(process: Process, work: () => T): Promise<T> {
    const { scheduler } = world()
    return new Promise((resolve, reject) => {
      const answer = (settle: () => void): void => void scheduler.after(latency(), settle, process)
      const arrive = (): void => {
        const isFailing = disk.failing > 0 && scheduler.random.chance(disk.failing)
        const isDone = !isFailing || scheduler.random.chance(0.5)
        try {
          const result = isDone ? work() : undefined
          answer(() =>
            isFailing ? reject(new StoreAway('the connection was lost')) : resolve(result as T),
          )
        } catch (error) {
          answer(() => reject(error as Error))
        }
      }
      // What was sent arrives, also if its sender dies meanwhile.
      scheduler.after(latency(), arrive, null)
    })
  }

  function connect(process: Process): Db {
    const read = (text: string, ...values: Value[]) => call(process, () => rows(text, values))
    const mapped = (query: MappedQuery) =>
      call(process, () => query.through.map(rows(query.text, query.values), ...query.parameters))
    return {
      engine: 'sqlite',
      read: read as Db['read'],
      readMapped: mapped as Db['readMapped'],
      scan: mapped as Db['scan'],
      write: ((unit: Unit) =>
        call(process, () => {
          const answer = runUnit(unit)
          if ((unit.durability ?? 'flushed') === 'flushed') flush()
          return answer
        })) as Db['write'],
      // Migrations alone need it, and they have run.
      tx: () => Promise.reject(new Error('no migration runs in a simulation')),
      close: async () => undefined,
    }
  }

  const disk: Disk = {
    connect,
    read: (text, ...values) => rows(text, values),
    cutPower() {
      database.exec('rollback; begin')
    },
    failing: 0,
    close: () => database.close(),
  }
  return disk
}

function open(image: Uint8Array): DatabaseSync {
  const database = new DatabaseSync(':memory:')
  database.deserialize(image)
  database.exec('pragma journal_mode = memory; pragma temp_store = memory; begin')
  return database
}
