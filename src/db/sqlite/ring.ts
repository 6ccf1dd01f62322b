/**
 * Shared memory through which units reach the writing thread: a ring of blocks, each with one batch. A message
 * would cost both threads more than running the units does. Each side numbers the texts of statements in the
 * same way, so one feeder belongs to exactly one drain.
 */
import type { Statement, Value } from '../db.ts'

/** The thread runs one batch while others are written for it. */
const BLOCKS = 16
/** Some units of a webhook. A larger batch, such as one with a large body, travels as a message. */
const BLOCK_BYTES = 64 * 1024
const CELLS_BYTES = 16 * 1024
const DATA_BYTES = BLOCK_BYTES - CELLS_BYTES
const CELLS = CELLS_BYTES / 4
/** UTF-8 needs at most three bytes for each unit of a JavaScript string. */
const MAX_BYTES_OF_CHARACTER = 3

/** The words in front of the blocks: whether the thread waits, and for each block whether it is full. */
const HEAD_WORDS = 1 + BLOCKS
const HEAD_BYTES = Math.ceil((HEAD_WORDS * 4) / 8) * 8
const WAITS = 0
const [EMPTY, FULL, SENT_AS_MESSAGE] = [0, 1, 2]

/** A block's first cells: where its cells end, where its text begins and ends, and `isFlushed`. */
const [END, TEXT_FROM, TEXT_TO, IS_FLUSHED] = [0, 1, 2, 3]
const BLOCK_HEAD_CELLS = 4

/** The lowest bits of a cell say what it is; the others are a small integer, or a length. */
const KIND_BITS = 3
const KIND_MASK = 7
const [NULL, SMALL, DOUBLE, TEXT, BYTES] = [0, 1, 2, 3, 4]
/** Not negative, so that -0 is none of them. */
const isSmall = (value: number): boolean => value > 0 && value < 2 ** 28 && value % 1 === 0
/** The kind, and the two halves of the number. */
const DOUBLE_CELLS = 3

/** A statement: the number of its text, its `expect`, and its number of values. A new text follows. */
const STATEMENT_CELLS = 4
const NOTHING_EXPECTED = -1

export type Batch = { units: Statement[][]; isFlushed: boolean }

export const createRingMemory = (): SharedArrayBuffer =>
  new SharedArrayBuffer(HEAD_BYTES + BLOCKS * BLOCK_BYTES)

export type Feeder = {
  /** Writes the first units that fit into one block. 0: there is no free block, or the first is too large. */
  put(units: Statement[][], isFlushed: boolean): number
  /** Whether a block is free. */
  hasRoom(): boolean
  /** Marks that the next batch arrives as a message. Needs a free block. */
  putMessage(): void
  /** Whether the thread waits, and must be woken. It is told once. */
  mustWake(): boolean
}

export function createFeeder(memory: SharedArrayBuffer): Feeder {
  const head = new Int32Array(memory, 0, HEAD_WORDS)
  const blocks = blocksOf(memory)
  const numbers = new Map<string, number>()
  let next = 0

  const hasRoom = (): boolean => Atomics.load(head, 1 + next) === EMPTY

  function publish(state: number): void {
    Atomics.store(head, 1 + next, state)
    next = (next + 1) % BLOCKS
  }

  return {
    hasRoom,
    put(units, isFlushed) {
      if (!hasRoom()) return 0
      const { cells, data } = blocks[next] as Block
      let at = BLOCK_HEAD_CELLS
      let byteAt = 0
      let text = ''
      let count = 0
      for (const unit of units) {
        const size = sizeOf(unit)
        const textBytes = (text.length + size.characters) * MAX_BYTES_OF_CHARACTER
        if (at + size.cells > CELLS || byteAt + size.bytes + textBytes > DATA_BYTES) break
        count++
        cells[at++] = unit.length
        for (const { text: sql, values, expect = NOTHING_EXPECTED } of unit) {
          const known = numbers.get(sql)
          if (known === undefined) {
            numbers.set(sql, numbers.size)
            text += sql
          }
          cells[at] = known ?? numbers.size - 1
          cells[at + 1] = expect
          cells[at + 2] = values.length
          cells[at + 3] = known === undefined ? sql.length : 0
          at += STATEMENT_CELLS
          for (const value of values) {
            if (typeof value === 'string') {
              cells[at++] = (value.length << KIND_BITS) | TEXT
              text += value
            } else if (value === null) {
              cells[at++] = NULL
            } else if (typeof value !== 'number') {
              cells[at++] = (value.length << KIND_BITS) | BYTES
              data.set(value, byteAt)
              byteAt += value.length
            } else if (isSmall(value)) {
              cells[at++] = (value << KIND_BITS) | SMALL
            } else {
              NUMBER[0] = value
              cells[at] = DOUBLE
              cells[at + 1] = HALVES[0] as number
              cells[at + 2] = HALVES[1] as number
              at += DOUBLE_CELLS
            }
          }
        }
      }
      if (count === 0) return 0
      cells[END] = at
      cells[TEXT_FROM] = byteAt
      cells[TEXT_TO] = byteAt + data.utf8Write(text, byteAt)
      cells[IS_FLUSHED] = isFlushed ? 1 : 0
      publish(FULL)
      return count
    },
    putMessage: () => publish(SENT_AS_MESSAGE),
    mustWake: () => Atomics.exchange(head, WAITS, 0) === 1,
  }
}

export type Drain = {
  /** The next batch, whose bytes are valid until it is freed. Null if there is none yet. */
  take(): Batch | 'message' | null
  /** Frees the blocks of everything that was taken. */
  free(): void
  /** Notes that this thread waits to be woken. False if a batch has arrived meanwhile. */
  wait(): boolean
}

export function createDrain(memory: SharedArrayBuffer): Drain {
  const head = new Int32Array(memory, 0, HEAD_WORDS)
  const blocks = blocksOf(memory)
  const texts: string[] = []
  Atomics.store(head, WAITS, 1)
  let next = 0
  /** Blocks that were taken and not freed yet: those before `next`. */
  let held = 0

  return {
    take() {
      const state = held === BLOCKS ? EMPTY : Atomics.load(head, 1 + next)
      if (state === EMPTY) return null
      const block = blocks[next] as Block
      next = (next + 1) % BLOCKS
      held++
      return state === SENT_AS_MESSAGE ? 'message' : read(block, texts)
    },
    free() {
      for (; held > 0; held--) Atomics.store(head, 1 + ((next - held + BLOCKS) % BLOCKS), EMPTY)
    },
    wait() {
      Atomics.store(head, WAITS, 1)
      if (Atomics.load(head, 1 + next) === EMPTY) return true
      // A feeder that has seen the note meanwhile wakes this thread, although it does not wait.
      Atomics.store(head, WAITS, 0)
      return false
    },
  }
}

type Block = { cells: Int32Array; data: SharedBytes }

/** Two methods of Node that its types leave out. `write` and `toString` would look their encoding up each time. */
type SharedBytes = Buffer<SharedArrayBuffer> & {
  utf8Write(text: string, at: number): number
  utf8Slice(from: number, to: number): string
}

function blocksOf(memory: SharedArrayBuffer): Block[] {
  return Array.from({ length: BLOCKS }, (_, place) => {
    const from = HEAD_BYTES + place * BLOCK_BYTES
    return {
      cells: new Int32Array(memory, from, CELLS),
      data: Buffer.from(memory, from + CELLS_BYTES, DATA_BYTES) as SharedBytes,
    }
  })
}

/** An upper bound of what a unit takes. A value of a type that no cell has takes more than there is. */
function sizeOf(unit: Statement[]): { cells: number; bytes: number; characters: number } {
  let cells = 1
  let bytes = 0
  let characters = 0
  for (const { text, values } of unit) {
    cells += STATEMENT_CELLS + values.length
    characters += text.length
    for (const value of values) {
      if (typeof value === 'string') characters += value.length
      else if (typeof value === 'number') cells += DOUBLE_CELLS
      else if (value instanceof Uint8Array) bytes += value.length
      else if (value !== null) cells += CELLS
    }
  }
  return { cells, bytes, characters }
}

function read({ cells, data }: Block, texts: string[]): Batch {
  const end = cells[END] as number
  const units: Statement[][] = []
  // All bytes are in front of all text.
  let byteAt = 0
  const text = data.utf8Slice(cells[TEXT_FROM] as number, cells[TEXT_TO] as number)
  let textAt = 0
  const cut = (length: number): string => {
    textAt += length
    return text.slice(textAt - length, textAt)
  }
  let at = BLOCK_HEAD_CELLS
  while (at < end) {
    const unit: Statement[] = []
    const count = cells[at++] as number
    for (let i = 0; i < count; i++) {
      const number = cells[at] as number
      const expect = cells[at + 1] as number
      const valueCount = cells[at + 2] as number
      const newText = cells[at + 3] as number
      at += STATEMENT_CELLS
      if (newText > 0) texts.push(ownText(cut(newText)))
      const values: Value[] = []
      for (let j = 0; j < valueCount; j++) {
        const cell = cells[at++] as number
        const amount = cell >> KIND_BITS
        switch (cell & KIND_MASK) {
          case SMALL:
            values.push(amount)
            break
          case TEXT:
            values.push(cut(amount))
            break
          case BYTES:
            values.push(data.subarray(byteAt, byteAt + amount))
            byteAt += amount
            break
          case DOUBLE:
            HALVES[0] = cells[at++] as number
            HALVES[1] = cells[at++] as number
            values.push(NUMBER[0] as number)
            break
          default:
            values.push(null)
        }
      }
      const sql = texts[number] as string
      unit.push(expect === NOTHING_EXPECTED ? { text: sql, values } : { text: sql, values, expect })
    }
    units.push(unit)
  }
  return { units, isFlushed: cells[IS_FLUSHED] === 1 }
}

/** A copy. A piece of a text keeps all of it in memory, which here is what a whole batch has to say. */
const ownText = (text: string): string => Buffer.from(text).toString()

/** A number, and the two cells that hold it. */
const NUMBER = new Float64Array(1)
const HALVES = new Int32Array(NUMBER.buffer)
