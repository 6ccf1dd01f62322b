/**
 * The store's seam. Both engines speak the same SQL: `$1` placeholders, text, integers and bytes,
 * `insert … on conflict`, `update … where <old state> returning *`. Times are unix milliseconds.
 */

export type Value = null | number | string | Uint8Array

export type Row = Record<string, Value>

/** One statement of a unit. With `expect`, a different number of rows refuses the whole unit. */
export type Statement = { text: string; values: Value[]; expect?: number }

export type Tx = { run<T extends Row = Row>(text: string, ...values: Value[]): Promise<T[]> }

/** When a unit is on the disk: a machine that stops after that has it still. */
export type Kept = 'when resolved' | 'with the next'

export type Db = {
  /** Rows of one query. Sees every write that was acknowledged, and never waits behind one. */
  read<T extends Row = Row>(text: string, ...values: Value[]): Promise<T[]>

  /**
   * Runs one unit as one transaction and resolves, once it is durable, to the rows that each
   * statement returned. Units that arrive together share one commit.
   * @throws UnitRefused when an `expect` was not met: nothing of this unit happened.
   * @param kept `with the next` resolves once everybody sees the unit, and leaves it to the next
   * one to bring it to the disk. A machine that loses its power before has forgotten it: for what
   * nobody outside is told of until a unit that follows.
   * @throws StoreError when the store failed: nothing of this unit was acknowledged.
   */
  write(unit: Statement[], kept?: Kept): Promise<Row[][]>

  /** Statements one after another in one transaction, alone. For cold paths only. */
  tx<T>(work: (tx: Tx) => Promise<T>): Promise<T>

  /** Waits for what is under way, then lets go of the store. */
  close(): Promise<void>
}

/** The condition of a unit did not hold; `statement` is the index of the one that said so. */
export class UnitRefused extends Error {
  override name = 'UnitRefused'
  readonly statement: number
  constructor(statement: number) {
    super(`statement ${statement} of the unit did not meet its condition`)
    this.statement = statement
  }
}

/** The store itself failed (disk full, damaged file, connection lost). */
export class StoreError extends Error {
  override name = 'StoreError'
}

/** It cannot be reached, or takes nothing now. That passes, or is the operator's to mend. */
export class StoreAway extends StoreError {
  override name = 'StoreAway'
}

/**
 * It works, and does not take a value of this unit: too large, missing, or of another kind. The same
 * unit fails the same way each time.
 */
export class ValueRefused extends StoreError {
  override name = 'ValueRefused'
}

/** The store cannot be opened or is not ours; the message is a sentence for the operator. */
export class StoreUnusable extends Error {
  override name = 'StoreUnusable'
}

/** A unit whose refusal is an ordinary answer: its rows, or the statement that refused it. */
export async function attempt(
  unit: Promise<Row[][]>,
): Promise<{ rows: Row[][] } | { refused: number }> {
  try {
    return { rows: await unit }
  } catch (error) {
    if (error instanceof UnitRefused) return { refused: error.statement }
    throw error
  }
}
