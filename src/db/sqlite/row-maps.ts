/** Runs the maps of rows in the thread that has read them. */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Row, RowMap, Value } from '../db.ts'

/** A map as a thread is told of it. */
export type NamedMap = Pick<RowMap, 'module' | 'name'> & { parameters: Value[] }

export type Cells = { columns: string[]; rows: Value[][] }

// A dynamic import is asynchronous, and the replies of a thread keep the order of its requests.
const require = createRequire(import.meta.url)

/** The rows that the map makes of these. All of them have the columns of the first one. */
export function mapRows({ module, name, parameters }: NamedMap, { columns, rows }: Cells): Cells {
  const { [name]: map } = require(fileURLToPath(module)) as Record<string, RowMap['map']>
  if (map === undefined) throw new Error(`${module} exports no ${name}`)
  const made = map(
    rows.map((row) => rowOf(columns, row)),
    ...parameters,
  )
  for (const row of rows) for (const cell of row) if (cell instanceof Uint8Array) free(cell)
  const [first] = made
  if (first === undefined) return { columns: [], rows: [] }
  const names = Object.keys(first)
  return { columns: names, rows: made.map((row) => names.map((column) => row[column] ?? null)) }
}

function rowOf(columns: string[], cells: Value[]): Row {
  const row: Row = {}
  for (let i = 0; i < columns.length; i++) row[columns[i] as string] = cells[i] as Value
  return row
}

/** Gives memory back at once. The garbage collector would leave a long scan's to lie around, for many MiB. */
function free({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength >= FREED_FROM_BYTES) buffer.transfer(0)
}
const FREED_FROM_BYTES = 4 * 1024
