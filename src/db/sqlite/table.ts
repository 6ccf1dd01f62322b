/** The form in which rows go from a thread to the service. */
import { concat } from '../../lib/bytes.ts'
import type { Row, Value } from '../db.ts'
import { putBytes, TRANSFER_FROM_BYTES } from './message.ts'
import type { Cells } from './row-maps.ts'

/**
 * Copied between threads at the least cost: cells row by row, the column names once, and the bytes of all rows
 * in one piece. A cell of bytes holds their length.
 */
export type Table = { columns: string[]; cells: Value[]; byteCells: number[]; bytes: Uint8Array }

export function pack({ columns, rows }: Cells): Table {
  const cells: Value[] = []
  const byteCells: number[] = []
  const parts: Uint8Array[] = []
  for (const row of rows) {
    for (const value of row) {
      if (value instanceof Uint8Array) {
        byteCells.push(cells.length)
        parts.push(value)
        cells.push(value.length)
      } else cells.push(value)
    }
  }
  const [only, ...others] = parts
  return { columns, cells, byteCells, bytes: only && others.length === 0 ? only : concat(...parts) }
}

/** The rows of a table; null stands for none. */
export function rowsOf(table: Table | null): Row[] {
  if (table === null) return []
  const { columns, cells, byteCells, bytes } = table
  putBytes(cells, byteCells, bytes)
  const rows: Row[] = []
  for (let at = 0; at < cells.length; at += columns.length) {
    const row: Row = {}
    for (let i = 0; i < columns.length; i++) row[columns[i] as string] = cells[at + i] as Value
    rows.push(row)
  }
  return rows
}

/** The buffer of a table that is transferred to the other thread without a copy. */
export function transferable(table: Table | null): ArrayBuffer[] {
  if (table === null || table.bytes.byteLength < TRANSFER_FROM_BYTES) return []
  const { buffer } = table.bytes
  return buffer instanceof ArrayBuffer ? [buffer] : []
}
