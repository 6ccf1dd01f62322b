/**
 * Messages to PostgreSQL. The messages of a pipeline are written into one buffer, so that a pipeline is
 * one write (postgresql.org/docs/current/protocol-message-formats.html). `pg` has a writer of its own;
 * `connection.ts` says what of `pg` we rely on, and `test/db/postgres/wire.test.ts` has the bytes.
 */
import type { Value } from '../db.ts'

export type PipelineBuffer = {
  parse(name: string, text: string, types: number[]): void
  /** `types` are those that the statement was parsed with. */
  bind(name: string, values: Value[], types: number[]): void
  /** Asks for the columns of the bound statement. */
  describe(): void
  execute(): void
  /** Tells the server to forget a statement. */
  close(name: string): void
  /** Ends the pipeline. Its bytes are valid until the next message is written. */
  sync(): Buffer
}

/** The types of values, as PostgreSQL numbers them (pg_type.dat). */
export const TYPE_OF = { bytes: 17, integer: 20, text: 25, unspecified: 0 }

const FIRST_BYTES = 16 * 1024
/** A buffer that has grown beyond this is not reused for the next pipeline. */
const REUSED_BYTES = 256 * 1024
/** The most bytes that a UTF-16 code unit takes in UTF-8. */
const BYTES_PER_CHARACTER = 3

const CODE = { bind: 66, close: 67, describe: 68, execute: 69, parse: 80, sync: 83 }
const OF_STATEMENT = 83
const OF_PORTAL = 80
const NULL_LENGTH = -1
const BINARY = 1
const TEXT = 0

/** A buffer for one connection. The next pipeline may begin only once the server has read this one. */
export function createPipelineBuffer(): PipelineBuffer {
  let buffer = Buffer.allocUnsafeSlow(FIRST_BYTES)
  let end = 0

  /** Makes room for the next `bytes`. */
  function room(bytes: number): void {
    if (end + bytes <= buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(buffer.length * 2, end + bytes))
    buffer.copy(larger, 0, 0, end)
    buffer = larger
  }

  /** Begins a message. @returns the offset of its length, which `finish` fills in. */
  function begin(code: number): number {
    room(5)
    buffer[end] = code
    end += 5
    return end - 4
  }

  function finish(at: number): void {
    buffer.writeInt32BE(end - at, at)
  }

  function int16(number: number): void {
    room(2)
    end = buffer.writeInt16BE(number, end)
  }

  function int32(number: number): void {
    room(4)
    end = buffer.writeInt32BE(number, end)
  }

  function byte(number: number): void {
    room(1)
    buffer[end++] = number
  }

  function zeroTerminated(text: string): void {
    room(text.length * BYTES_PER_CHARACTER + 1)
    end += buffer.write(text, end)
    buffer[end++] = 0
  }

  function lengthAndText(text: string): void {
    room(text.length * BYTES_PER_CHARACTER + 4)
    const length = buffer.write(text, end + 4)
    buffer.writeInt32BE(length, end)
    end += 4 + length
  }

  function lengthAndBytes(bytes: Uint8Array): void {
    room(bytes.length + 4)
    buffer.writeInt32BE(bytes.length, end)
    buffer.set(bytes, end + 4)
    end += 4 + bytes.length
  }

  return {
    parse(name, text, types) {
      const at = begin(CODE.parse)
      zeroTerminated(name)
      zeroTerminated(text)
      int16(types.length)
      for (const type of types) int32(type)
      finish(at)
    },
    bind(name, values, types) {
      const at = begin(CODE.bind)
      // The portal has no name.
      byte(0)
      zeroTerminated(name)
      int16(types.length)
      for (const type of types) int16(type === TYPE_OF.bytes ? BINARY : TEXT)
      int16(values.length)
      for (const value of values) {
        if (value === null) int32(NULL_LENGTH)
        else if (typeof value === 'string') lengthAndText(value)
        else if (typeof value === 'number') lengthAndText(String(value))
        else lengthAndBytes(value)
      }
      // All columns of the answer as text.
      int16(1)
      int16(TEXT)
      finish(at)
    },
    describe() {
      const at = begin(CODE.describe)
      byte(OF_PORTAL)
      byte(0)
      finish(at)
    },
    execute() {
      const at = begin(CODE.execute)
      byte(0)
      // As many rows as there are.
      int32(0)
      finish(at)
    },
    close(name) {
      const at = begin(CODE.close)
      byte(OF_STATEMENT)
      zeroTerminated(name)
      finish(at)
    },
    sync() {
      finish(begin(CODE.sync))
      const bytes = buffer.subarray(0, end)
      end = 0
      if (buffer.length > REUSED_BYTES) buffer = Buffer.allocUnsafeSlow(FIRST_BYTES)
      return bytes
    },
  }
}
