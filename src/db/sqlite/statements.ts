/** The statements of one connection, each prepared once. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Row, Value } from '../db.ts'

/** The cells of each row are in the order of the columns. A statement that can have no rows has no columns. */
type Done = { columns: string[]; rows: Value[][]; count: number }

/** Runs a statement, and counts the rows that it returned or changed. */
export type Run = (text: string, values: Value[]) => Done

type Prepared = { statement: StatementSync; columns: string[] }

export function createStatements(database: DatabaseSync): Run {
  const prepared = new Map<string, Prepared>()

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

  return (text, values) => {
    const entry = prepare(text)
    const { statement } = entry
    if (entry.columns.length === 0) {
      return { columns: [], rows: [], count: Number(statement.run(...values).changes) }
    }
    const rows = statement.all(...values) as unknown as Value[][]
    // SQLite prepares a statement anew when a migration has changed its table, here or in another process.
    if (rows[0] && rows[0].length !== entry.columns.length) entry.columns = columnsOf(statement)
    return { columns: entry.columns, rows, count: rows.length }
  }
}

const columnsOf = (statement: StatementSync): string[] =>
  statement.columns().map(({ name }) => name)

export function rowOf(columns: string[], cells: Value[]): Row {
  const row: Row = {}
  for (let i = 0; i < columns.length; i++) row[columns[i] as string] = cells[i] as Value
  return row
}
