/**
 * The form in which statements go to a thread at the least cost: one flat list of cells, all bytes in one
 * piece, and each text only when it is first used. A packer and an unpacker number the texts in the same
 * way, so each packer belongs to exactly one unpacker.
 */
import { concat } from '../../lib/bytes.ts'
import type { Statement, Value } from '../db.ts'

export type Message = {
  newTexts: string[]
  /** For each unit, its number of statements, and for each statement, its head and its values. */
  cells: Value[]
  /** The indexes of cells that are bytes. Such a cell holds their length; `bytes` holds them in order. */
  byteCells: number[]
  bytes: Uint8Array<ArrayBuffer>
}

/** Fewer bytes are cheaper to copy to the other thread than to transfer. */
export const TRANSFER_FROM_BYTES = 16 * 1024

/** The head of a statement: the number of its text, its `expect`, and its number of values. */
const HEAD_CELLS = 3
const NOTHING_EXPECTED = -1

export function createPacker(): (units: Statement[][]) => Message {
  const numbers = new Map<string, number>()
  return (units) => {
    const newTexts: string[] = []
    const cells: Value[] = []
    const byteCells: number[] = []
    const parts: Uint8Array[] = []
    for (const unit of units) {
      cells.push(unit.length)
      for (const { text, values, expect = NOTHING_EXPECTED } of unit) {
        let number = numbers.get(text)
        if (number === undefined) {
          number = numbers.size
          numbers.set(text, number)
          newTexts.push(text)
        }
        cells.push(number, expect, values.length)
        for (const value of values) {
          if (value instanceof Uint8Array) {
            byteCells.push(cells.length)
            parts.push(value)
            cells.push(value.length)
          } else cells.push(value)
        }
      }
    }
    return { newTexts, cells, byteCells, bytes: concat(...parts) }
  }
}

export function createUnpacker(): (message: Message) => Statement[][] {
  const texts: string[] = []
  return ({ newTexts, cells, byteCells, bytes }) => {
    texts.push(...newTexts)
    putBytes(cells, byteCells, bytes)
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

/** Replaces the lengths in the cells by the bytes. */
export function putBytes(cells: Value[], byteCells: number[], bytes: Uint8Array): void {
  let at = 0
  for (const cell of byteCells) {
    const length = cells[cell] as number
    cells[cell] = bytes.subarray(at, at + length)
    at += length
  }
}
