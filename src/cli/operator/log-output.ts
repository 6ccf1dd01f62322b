/** Where the log goes. */
import { write, writeSync } from 'node:fs'
import { codeOf } from '../../lib/errors.ts'

/** A log that nobody reads must not fill the memory: lines beyond are lost. */
const MAX_WAITING_CHARS = 8 * 1024 * 1024
/** A full pipe is tried again after this time, and at the end so often. */
const RETRY_MS = 20
const RETRIES_AT_END = 50

type File = {
  write(bytes: Buffer, done: (error: Error | null, written: number) => void): void
  writeSync(bytes: Buffer): number
}

const STDOUT: File = {
  write: (bytes, done) => write(1, bytes, done),
  writeSync: (bytes) => writeSync(1, bytes),
}

/**
 * Collects the lines of one turn of the event loop, and writes them at its end. Each write is a system call, and a
 * busy service logs several lines in a turn. Lines that cannot be written, such as to a full disk, are lost: the
 * service matters more than its log.
 */
export function createLogOutput(file: File = STDOUT) {
  /** Lines of which nothing was written yet. */
  let waiting = ''
  /** What is left of those that are being written. */
  let rest = Buffer.alloc(0)
  let isWriting = false
  let retry: NodeJS.Timeout | null = null

  function next(): void {
    if (isWriting || retry) return
    if (rest.length === 0) {
      rest = Buffer.from(waiting)
      waiting = ''
    }
    if (rest.length === 0) return
    isWriting = true
    file.write(rest, (error, written) => {
      isWriting = false
      if (error !== null && isFull(error)) {
        retry = setTimeout(again, RETRY_MS)
        return
      }
      rest = error === null ? rest.subarray(written) : Buffer.alloc(0)
      next()
    })
  }

  function again(): void {
    retry = null
    next()
  }

  return {
    write(line: string): void {
      if (waiting.length + line.length > MAX_WAITING_CHARS) return
      if (waiting === '') setImmediate(next)
      waiting += line
    },
    /** Writes the collected lines now, before the process ends. */
    flush(): void {
      // A write that is under way goes on by itself.
      const left = isWriting ? [] : [rest]
      writeAll(file, Buffer.concat([...left, Buffer.from(waiting)]))
      rest = Buffer.alloc(0)
      waiting = ''
    },
  }
}

function writeAll(file: File, bytes: Buffer): void {
  let rest = bytes
  for (let retries = 0; rest.length > 0 && retries < RETRIES_AT_END; ) {
    try {
      rest = rest.subarray(file.writeSync(rest))
    } catch (error) {
      if (!isFull(error)) return
      retries++
      sleep(RETRY_MS)
    }
  }
}

/** Whether a pipe has no room until its reader takes something. */
const isFull = (error: unknown): boolean => codeOf(error) === 'EAGAIN'

function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
