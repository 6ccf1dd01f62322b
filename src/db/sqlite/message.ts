/**
 * What a store and its threads say to each other, in the form that costs least: one flat list of cells, all bytes in
 * one piece, and each text of a statement only when it is first used.
 */
import { concat } from '../../lib/bytes.ts'
import { messageOf } from '../../lib/errors.ts'
import type { Row, RowMap, Statement, Value } from '../db.ts'

export type WorkerOptions = {
  file: string
  /** A scanner reads in slices of a long work, and gives way to everybody else. */
  role: 'writer' | 'reader' | 'scanner'
  truncateEveryMs: number
}

export type Request =
  /** For a thread that has no open file. */
  | { kind: 'open'; options: WorkerOptions }
  | { kind: 'units'; message: Message; isFlushed: boolean }
  /** Each a unit of one statement. `maps` are those of the queries at the same places; null if none has one. */
  | { kind: 'queries'; message: Message; maps: (NamedMap | null)[] | null }
  | { kind: 'close' }

/** A map of rows as a thread is told of it. */
export type NamedMap = Pick<RowMap, 'module' | 'name'> & { parameters: Value[] }

/** Null for a unit that succeeded and returned no rows, as most do. */
export type UnitResult = null | { tables: (Table | null)[] } | { refused: number } | Failure
export type QueryResult = { table: Table | null } | Failure
/** `opened` is null, or says why the file cannot be used. */
export type Reply =
  | { opened: { code: string; message: string } | null }
  | { units: UnitResult[] }
  | { queries: QueryResult[] }
  | { closed: true }

/** `isOfValue`: the only fault is a value, which would be refused every time. */
export type Failure = { error: string; isOfValue?: boolean }

export type Message = {
  newTexts: string[]
  /** For each unit, its number of statements, and for each statement, its head and its values. */
  cells: Value[]
  /** The indexes of cells that are bytes. Such a cell holds their length; `bytes` holds them in order. */
  byteCells: number[]
  bytes: Uint8Array<ArrayBuffer>
}

/** Fewer bytes are cheaper to copy to the other thread than to transfer. */
const TRANSFER_FROM_BYTES = 16 * 1024

/** The head of a statement: the number of its text, its `expect`, and its number of values. */
const HEAD_CELLS = 3
const NOTHING_EXPECTED = -1

/** Packer and unpacker number the texts in the same way, so each packer belongs to exactly one unpacker. */
export function createPacker(): (units: Statement[][]) => Message {
  const numbers = new Map<string, number>()
  return (units) => {
    const newTexts: string[] = []
    const cells = createCells()
    for (const unit of units) {
      cells.add(unit.length)
      for (const { text, values, expect = NOTHING_EXPECTED } of unit) {
        let number = numbers.get(text)
        if (number === undefined) {
          number = numbers.size
          numbers.set(text, number)
          newTexts.push(text)
        }
        cells.add(number)
        cells.add(expect)
        cells.add(values.length)
        for (const value of values) cells.add(value)
      }
    }
    return { newTexts, ...cells.packed() }
  }
}

export function createUnpacker(): (message: Message) => Statement[][] {
  const texts: string[] = []
  return ({ newTexts, ...packed }) => {
    texts.push(...newTexts)
    const cells = unpacked(packed)
    const units: Statement[][] = []
    let at = 0
    while (at < cells.length) {
      const unit: Statement[] = []
      const count = cells[at++] as number
      for (let i = 0; i < count; i++) {
        const text = texts[cells[at] as number] as string
        const expect = cells[at + 1] as number
        const end = at + HEAD_CELLS + (cells[at + 2] as number)
        const values = cells.slice(at + HEAD_CELLS, end)
        unit.push(expect === NOTHING_EXPECTED ? { text, values } : { text, values, expect })
        at = end
      }
      units.push(unit)
    }
    return units
  }
}

/** Rows: their cells one after the other, and the names of their columns once. */
export type Table = { columns: string[] } & Omit<Message, 'newTexts'>

export function packTable(columns: string[], rows: Value[][]): Table {
  const cells = createCells()
  for (const row of rows) for (const value of row) cells.add(value)
  return { columns, ...cells.packed() }
}

/** The rows of a table; null stands for none. */
export function rowsOf(table: Table | null): Row[] {
  if (table === null) return []
  const { columns } = table
  const cells = unpacked(table)
  const rows: Row[] = []
  for (let at = 0; at < cells.length; at += columns.length) {
    const row: Row = {}
    for (let i = 0; i < columns.length; i++) row[columns[i] as string] = cells[at + i] as Value
    rows.push(row)
  }
  return rows
}

type Packed = Omit<Message, 'newTexts'>

function createCells() {
  const cells: Value[] = []
  const byteCells: number[] = []
  const parts: Uint8Array[] = []
  return {
    add(value: Value): void {
      if (value instanceof Uint8Array) {
        byteCells.push(cells.length)
        parts.push(value)
        cells.push(value.length)
      } else cells.push(value)
    },
    packed: (): Packed => ({ cells, byteCells, bytes: concat(...parts) }),
  }
}

/** The cells, with bytes in the place of their lengths. */
function unpacked({ cells, byteCells, bytes }: Packed): Value[] {
  let at = 0
  for (const cell of byteCells) {
    const length = cells[cell] as number
    cells[cell] = bytes.subarray(at, at + length)
    at += length
  }
  return cells
}

/** The buffers of these that go to the other thread without a copy. */
export const transferred = (all: (Packed | null | undefined)[]): ArrayBuffer[] =>
  all.flatMap((one) =>
    one && one.bytes.byteLength >= TRANSFER_FROM_BYTES ? [one.bytes.buffer] : [],
  )

/**
 * SQLite's result codes for a refused value (sqlite.org/rescode.html): too big, constraint, mismatch. Below,
 * Node's codes for a value that cannot be converted between SQLite and JavaScript.
 */
const VALUE_CODES = new Set([18, 19, 20])
const VALUE_ERRORS = new Set(['ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_VALUE', 'ERR_OUT_OF_RANGE'])

export function failure(error: unknown): Failure {
  const { code, message } = describe(error)
  const named = error instanceof Error && 'code' in error ? String(error.code) : ''
  const isOfValue = VALUE_CODES.has(Number(code) & 0xff) || VALUE_ERRORS.has(named)
  return { error: message, isOfValue }
}

/** The result code of SQLite's error, or `CORRUPT`, and the message. */
export function describe(error: unknown): { code: string; message: string } {
  const code = error instanceof Error && 'errcode' in error ? String(error.errcode) : ''
  const named = error instanceof Error && 'code' in error ? String(error.code) : ''
  return { code: named === 'CORRUPT' ? named : code, message: messageOf(error) }
}
