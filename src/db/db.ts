/**
 * The store's seam. Both engines speak the same SQL: `$1` placeholders, text, integers and bytes,
 * `insert … on conflict`, `update … where <old state> returning *`. Times are unix milliseconds.
 */

export type Value = null | number | string | Uint8Array

export type Row = Record<string, Value>

/** With `expect`, a different number of rows refuses the whole unit. */
export type Statement = { text: string; values: Value[]; expect?: number }

/**
 * A pure function of the rows of a query. An engine may run it in the thread that reads them, so that the rows
 * need not be copied to this one and their work holds up nobody here. A thread cannot be given a function: it
 * imports `module` and runs what that exports as `name`. The rows that a map makes share no memory with the
 * query's.
 */
export type RowMap = {
  /** `import.meta.url` of the module. What it imports stays in memory, so it should import little. */
  module: string
  name: string
  map: (rows: Row[], ...parameters: Value[]) => Row[]
}

/**
 * A long query, with the map of its rows and the map's own parameters if it has one. One that is not awaited gives way
 * to all other work of the machine.
 */
export type Query = { text: string; values: Value[]; isAwaited?: true } & (
  | { through: RowMap; parameters: Value[] }
  | object
)

/** Statements that are committed together or not at all. */
export type Unit<Name extends string = string> = {
  /**
   * Names the row, or the table, that the unit locks first. Engines that lock rows run the units of
   * a commit in the order of their keys, so that two instances never wait for each other's locks in
   * a circle. Units that lock the same row first must have the same key.
   */
  lockKey: string
  /** In the order in which they run. One name may stand for several statements, or for none. */
  statements: Record<Name, Statement | Statement[]>
  /** Default `flushed`. */
  durability?: Durability
}

/**
 * When a unit resolves. `flushed`: it is on the disk, and survives a loss of power. `deferred`: everybody
 * sees it, and the next flushed unit writes it to the disk; a loss of power before that undoes it. Use
 * `deferred` only if nobody outside learns of the unit before a flushed one follows.
 */
export type Durability = 'flushed' | 'deferred'

/** The rows that the statements of each name returned. */
export type Answer<Name extends string = string> = Record<Name, Row[]>

export type Tx = { run<T extends Row = Row>(text: string, ...values: Value[]): Promise<T[]> }

export type Db = {
  /** Where the tables of a room differ (`migrations/NNNN-….sqlite.sql`), so do the statements that change them. */
  engine: 'sqlite' | 'postgres'

  /**
   * The few rows that a query finds by an index. Sees every acknowledged write, and never waits for one. SQLite reads
   * in this thread, so nothing else runs here meanwhile.
   */
  read<T extends Row = Row>(text: string, ...values: Value[]): Promise<T[]>

  /** The same for long work or a part of it, such as a search: no other read need wait for it. */
  scan<T extends Row = Row>(query: Query): Promise<T[]>

  /**
   * Runs one unit as one transaction. Units that arrive together share one commit.
   * @throws UnitRefused when an `expect` was not met: the unit changed nothing.
   * @throws StoreError when the store failed: nothing of this unit was acknowledged.
   */
  write<Name extends string>(unit: Unit<Name>): Promise<Answer<Name>>

  /** Waits for the work under way, then closes the store. */
  close(): Promise<void>
}

/** A store whose tables may be missing, or old. Nothing else is asked of it before it was migrated. */
export type UnmigratedDb = Db & {
  /** Runs statements in a transaction of their own, while nothing else is written. They may take as long as they need. */
  tx<T>(work: (tx: Tx) => Promise<T>): Promise<T>
}

/** The condition of a unit did not hold. `statement` is the name of the statement that refused it. */
export class UnitRefused extends Error {
  override name = 'UnitRefused'
  readonly statement: string
  constructor(statement: string) {
    super(`the statement '${statement}' of the unit did not meet its condition`)
    this.statement = statement
  }
}

/** The store itself failed (disk full, damaged file, connection lost). */
export class StoreError extends Error {
  override name = 'StoreError'
}

/** The store is unreachable or full. This passes, or the operator can repair it. */
export class StoreAway extends StoreError {
  override name = 'StoreAway'
}

/** Another session held a lock that the statement needed, for too long or in a circle. The same may succeed later. */
export class StoreBusy extends StoreError {
  override name = 'StoreBusy'
}

/**
 * The store works, but refuses a value of this unit: it is too large, missing, or of the wrong type. The same
 * unit fails in the same way every time.
 */
export class ValueRefused extends StoreError {
  override name = 'ValueRefused'
}

/** The store cannot be opened or belongs to something else; the message is for the operator. */
export class StoreUnusable extends Error {
  override name = 'StoreUnusable'
  /** It is not there now: the same may succeed later. */
  readonly isAway: boolean
  constructor(message: string, { isAway = false } = {}) {
    super(message)
    this.isAway = isAway
  }
}

/** `$2, $3`: a place in a statement for each value, from this number on. */
export const places = (values: readonly unknown[], first = 1): string =>
  values.map((_, i) => `$${first + i}`).join(', ')

/** Inserts a row. `more` follows its values, such as `on conflict do nothing`. Refused if it is not inserted. */
export const insertRow = (table: string, row: Row, more = ''): Statement => ({
  text: `insert into ${table} (${Object.keys(row).join(', ')})
    values (${places(Object.keys(row))}) ${more}`,
  values: Object.values(row),
  expect: 1,
})

/**
 * `limit $2 + 0`: a limit by this value. The `+ 0` hides the parameter from SQLite's planner, which looks at the
 * value of a bare one, and would plan each execution anew.
 */
export const limitedTo = (place: number): string => `limit $${place} + 0`

/** Turns a refusal into an answer: the unit's rows, or the name of the statement that refused it. */
export async function attempt<Name extends string>(
  unit: Promise<Answer<Name>>,
): Promise<{ rows: Answer<Name> } | { refused: Name }> {
  try {
    return { rows: await unit }
  } catch (error) {
    if (error instanceof UnitRefused) return { refused: error.statement as Name }
    throw error
  }
}
