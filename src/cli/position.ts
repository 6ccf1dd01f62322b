/**
 * How far a listener has come, on disk. A record is one short line at the end of a file:
 *
 * - `sent N`, just before the system is given the last byte of event N. A killed process loses nothing
 *   that the system has taken, so the receiver gets N, and N is not sent again. It is not flushed: that
 *   would keep the moment open for longer than it is.
 * - `done N`, flushed, when the receiver has answered N.
 *
 * So a kill -9 doubles no event. One whose answer had not come is named by the next start, for it may not
 * have been sent either if the kill came between the two system calls. After a power cut such an event
 * is sent again.
 */
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { overwrite, readIfThere } from './data-folder.ts'

/** Beyond this many records the file is made anew. */
const MAX_RECORDS = 20_000

export type Position = {
  /** The last sequence that is not to be sent again, or null at the very first start. */
  last(): number | null
  /** The event that was sent when the process before this one was killed, or null. */
  unanswered: number | null
  sent(sequence: number): void
  done(sequence: number): void
  /** Passed over, by a filter: on disk with the next record that is flushed. */
  passed(sequence: number): void
  close(): void
}

/** The position in a file, which is this process's alone while it is open. */
export function openPosition(file: string): Position {
  const before = readPosition(readIfThere(file) ?? '')
  let last = before.last
  let records = 0
  let descriptor = begin()

  function begin(): number {
    overwrite(file, last === null ? '' : `done ${last}\n`)
    records = 0
    return openSync(file, 'a', 0o600)
  }

  function record(word: 'sent' | 'done', sequence: number): void {
    writeSync(descriptor, `${word} ${sequence}\n`)
    last = sequence
  }

  return {
    last: () => last,
    unanswered: before.unanswered,
    sent: (sequence) => record('sent', sequence),
    done(sequence) {
      record('done', sequence)
      fdatasyncSync(descriptor)
      if (++records < MAX_RECORDS) return
      closeSync(descriptor)
      descriptor = begin()
    },
    passed: (sequence) => record('done', sequence),
    close() {
      fdatasyncSync(descriptor)
      closeSync(descriptor)
    },
  }
}

/** What the complete lines of a file say; a line that was cut says nothing. */
export function readPosition(text: string): { last: number | null; unanswered: number | null } {
  let last: number | null = null
  let unanswered: number | null = null
  for (const [, word, digits] of text.matchAll(/^(sent|done) (\d{1,15})\n/gm)) {
    last = Number(digits)
    unanswered = word === 'sent' ? last : null
  }
  return { last, unanswered }
}
