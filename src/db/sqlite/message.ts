/**
 * Statements as they go over to a thread cheapest: one flat list of cells, the bytes of all in one
 * piece, and each text once, when it is first used. Whoever packs and whoever unpacks agree on the
 * numbers of the texts, so each has one other side.
 */
import { concat } from '../../lib/bytes.ts'
import type { Statement, Value } from '../db.ts'

export type Message = {
  newTexts: string[]
  /** For each unit its count of statements; for each of those the head, and then its values. */
  cells: Value[]
  /** Which cells are bytes. Such a cell has their length, and they lie in order in `bytes`. */
  byteCells: number[]
  bytes: Uint8Array<ArrayBuffer>
}

/** Fewer bytes are cheaper to copy to the other thread than to transfer. */
export const TRANSFER_FROM_BYTES = 16 * 1024

/** Before the values of a statement: the number of its text, what it expects, how many they are. */
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

/** Puts the bytes back where their lengths stand. */
export function putBytes(cells: Value[], byteCells: number[], bytes: Uint8Array): void {
  let at = 0
  for (const cell of byteCells) {
    const length = cells[cell] as number
    cells[cell] = bytes.subarray(at, at + length)
    at += length
  }
}
