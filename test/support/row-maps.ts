/** Maps of rows, in a module of their own because a thread of the store imports them. */
import type { Row, RowMap, Value } from '../../src/db/db.ts'

const mapped = (name: string, map: RowMap['map']): RowMap => ({
  module: import.meta.url,
  name,
  map,
})

/** One row with the ids, and with the bytes of all rows `times` times. */
export function joined(rows: Row[], times: Value): Row[] {
  const bytes = rows.map((row) => row.bytes as Uint8Array)
  return [
    {
      ids: rows.map(({ id }) => id).join(' '),
      bytes: Buffer.concat(Array.from({ length: Number(times) }, () => bytes).flat()),
    },
  ]
}
export const JOINED = mapped('joined', joined)

export const ALL_ROWS = mapped('allRows', allRows)
export function allRows(rows: Row[]): Row[] {
  return rows
}

export const NO_ROWS = mapped('noRows', noRows)
export function noRows(): Row[] {
  return []
}

export const FAILING = mapped('failing', failing)
export function failing(): Row[] {
  throw new Error('this map fails')
}

/** Ends the thread that runs it. */
export const ENDING = mapped('ending', ending)
export function ending(): Row[] {
  process.exit()
}
