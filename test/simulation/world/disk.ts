/**
 * The store of a run: SQLite in memory with the service's own schema and statements. Every call of a process
 * takes a while to arrive and to be answered, calls overtake each other, and a process that dies in between
 * never learns what became of them. A loss of power undoes what was not flushed.
 */
import {
  type Answer,
  type Db,
  type Query,
  type Row,
  type Statement,
  StoreAway,
  StoreError,
  type Unit,
  UnitRefused,
  type Value,
  ValueRefused,
} from '../../../src/db/db.ts'
import { failure } from '../../../src/db/sqlite/message.ts'
import { byName, inARow, nameAt } from '../../../src/db/unit.ts'
import { type Database, databaseFrom, emptyDatabase } from './database.ts'
import { type Process, world } from './world.ts'

export type Disk = ReturnType<typeof openDisk>

/** Milliseconds that a call takes, in each direction: mostly short, seldom long. */
function latency(): number {
  const { random } = world().scheduler
  const draw = random.next()
  if (draw < 0.8) return random.next() * 2
  if (draw < 0.98) return random.next() * 30
  return random.next() * 600
}

/** A read that is under way, and its answer once it was run. */
type WaitingRead = {
  process: Process
  arrivesAt: number
  run(): void
  settle: (() => void) | null
}

/** What gives a buyer the capability. */
const PROVISIONS = /^\s*insert into (?:catch_inbox|pulse_monitor|whisper)\s/

/** @param image an empty store that has its tables. */
export function openDisk(image: Uint8Array) {
  let database = emptyDatabase(image)
  const waitingReads = new Set<WaitingRead>()
  let isAllFlushed = true

  const rows = (text: string, values: Value[]): Row[] => database.execute(text, values).rows

  /** @throws UnitRefused, ValueRefused */
  function runUnit(unit: Unit): Answer {
    const statements = inARow(unit.statements)
    const run = (): Answer => {
      const results = statements.map((each, at) =>
        runStatement(each, () => nameAt(unit.statements, at)),
      )
      return byName(unit.statements, results)
    }
    const isFlushed = (unit.durability ?? 'flushed') === 'flushed'
    if (!isFlushed) database.keepUndo()
    // A statement that fails has changed nothing.
    const isOne = statements.length === 1 && statements[0]?.expect === undefined
    const answer = isOne ? run() : database.undoing(run)
    if (isFlushed) database.forgetUndo()
    isAllFlushed = isFlushed
    return answer
  }

  function runStatement({ text, values, expect }: Statement, name: () => string): Row[] {
    const done = executed(text, values)
    if (expect !== undefined && done.count !== expect) throw new UnitRefused(name())
    return done.rows
  }

  function executed(text: string, values: Value[]): ReturnType<Database['execute']> {
    if (disk.isRefusing && PROVISIONS.test(text)) throw new ValueRefused('refused for a while')
    try {
      return database.execute(text, values)
    } catch (error) {
      const { error: message, isOfValue } = failure(error)
      throw isOfValue ? new ValueRefused(message) : new StoreError(message)
    }
  }

  /** Whether a call finds no store. */
  const isAway = (): boolean => disk.failing > 0 && world().scheduler.random.chance(disk.failing)
  const awayError = (): StoreAway => new StoreAway('the connection was lost')

  /** A write arrives, is run, and is answered. What was sent arrives, also if its sender dies meanwhile. */
  function write<T>(process: Process, work: () => T): Promise<T> {
    const { scheduler } = world()
    return new Promise((resolve, reject) => {
      const answer = (settle: () => void): void => void scheduler.after(latency(), settle, process)
      const arrive = (): void => {
        const isFailing = isAway()
        const isDone = !isFailing || scheduler.random.chance(0.5)
        try {
          runReads()
          const result = isDone ? work() : undefined
          if (isDone) disk.onStored(process)
          answer(() => (isFailing ? reject(awayError()) : resolve(result as T)))
        } catch (error) {
          answer(() => reject(error as Error))
        }
      }
      scheduler.after(latency(), arrive, null)
    })
  }

  /**
   * A read arrives, is run, and is answered. To be run, it waits for the next change of the store or for its
   * answer: what it finds is the same, and its arrival is no event of its own.
   */
  function read<T>(process: Process, work: () => T): Promise<T> {
    const { scheduler } = world()
    const arrivesAt = scheduler.elapsed() + latency()
    if (isAway()) return scheduler.sleep(2 * latency()).then(() => Promise.reject(awayError()))
    return new Promise((resolve, reject) => {
      const waiting: WaitingRead = {
        process,
        arrivesAt,
        run() {
          waitingReads.delete(waiting)
          try {
            const result = work()
            waiting.settle = () => resolve(result)
          } catch (error) {
            waiting.settle = () => reject(error as Error)
          }
        },
        settle: null,
      }
      waitingReads.add(waiting)
      const answer = (): void => {
        if (!waiting.settle) waiting.run()
        waiting.settle?.()
      }
      scheduler.after(arrivesAt + latency() - scheduler.elapsed(), answer, process)
    })
  }

  /** Runs the reads that have arrived. Must be called before anything changes the store. */
  function runReads(): void {
    if (waitingReads.size === 0) return
    const now = world().scheduler.elapsed()
    for (const waiting of [...waitingReads]) {
      if (waiting.process.isDead) waitingReads.delete(waiting)
      else if (waiting.arrivesAt <= now) waiting.run()
    }
  }

  function connect(process: Process): Db {
    const plain = (text: string, ...values: Value[]) => read(process, () => rows(text, values))
    const scan = (query: Query) =>
      read(process, () => {
        const found = rows(query.text, query.values)
        return 'through' in query ? query.through.map(found, ...query.parameters) : found
      })
    return {
      engine: 'sqlite',
      read: plain as Db['read'],
      scan: scan as Db['scan'],
      write: ((unit: Unit) => write(process, () => runUnit(unit))) as Db['write'],
      close: async () => undefined,
    }
  }

  const disk = {
    connect,
    /** Rows as they are now, for the books. */
    read: (text: string, ...values: Value[]): Row[] => rows(text, values),
    /** A copy of what is stored, at one moment. */
    backup(): Uint8Array {
      database.forgetUndo()
      return database.copy()
    },
    /** Puts a copy in the place of the store. All processes must be dead. */
    restore(copy: Uint8Array): void {
      waitingReads.clear()
      database.close()
      database = databaseFrom(copy)
      isAllFlushed = true
    },
    /** Whether the products refuse what is to be provisioned. */
    isRefusing: false,
    /** Undoes what no flush has written. All processes must be dead. */
    cutPower(): void {
      database.undo()
      isAllFlushed = true
    },
    /** Whether a flush has written all that there is. */
    isFlushed: (): boolean => isAllFlushed,
    /** Called when a unit of this process is stored, before the process learns of it. */
    onStored: (_process: Process): void => undefined,
    /** How often a call finds no store, from 0 to 1. Half of those writes are committed nevertheless. */
    failing: 0,
    close: (): void => database.close(),
  }
  return disk
}
