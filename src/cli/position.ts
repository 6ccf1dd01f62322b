/**
 * The position of a listener, on disk. Each record is one short line at the end of a file:
 *
 * - `inbox ID` is the first line: a name can be given to another inbox later, whose sequences begin anew.
 * - `sent N` is written just before the last byte of event N is passed to the system. Bytes that the
 *   system has survive a kill of the process, so the receiver gets N, and N is not sent again. The
 *   record is not flushed, because that would lengthen the time between the two system calls.
 * - `done N` is written and flushed when the receiver has answered N.
 *
 * So a kill -9 never sends an event twice. The next start names an event without an answer, which was
 * not sent if the kill came between the two system calls. After a power cut, it is sent again.
 */
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Cli } from './cli.ts'
import { overwrite, readIfThere } from './data-folder.ts'

/** With more records than this, the file is written anew. */
const MAX_RECORDS = 20_000

export type Position = {
  /** The last sequence that must not be sent again, or null at the first start. */
  last(): number | null
  /** The event that had no answer when the previous process was killed, or null. */
  unanswered: number | null
  sent(sequence: number): void
  done(sequence: number): void
  /** Records an event that the filter skipped. It reaches the disk with the next flush. */
  passed(sequence: number): void
  close(): void
}

/** What a listener keeps beside the capability of this name: `.position`, `.failed`, `.lock`. */
export const listenerFile = ({ folder }: Pick<Cli, 'folder'>, name: string, end: string): string =>
  join(folder, 'listening', `${name}.${end}`)

/** Opens the position in the file for an inbox. The process must hold the listener's lock. */
export function openPosition(file: string, inbox: string): Position {
  const text = readIfThere(file) ?? ''
  const before = isOf(inbox, text) ? readPosition(text) : NEW
  let last = before.last
  let records = 0
  let descriptor = begin()

  function begin(): number {
    overwrite(file, `${headOf(inbox)}${last === null ? '' : `done ${last}\n`}`)
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

const NEW = { last: null, unanswered: null }

/** The first line of a file that belongs to one inbox. */
export const headOf = (inbox: string): string => `inbox ${inbox}\n`

/** Whether a file belongs to this inbox. One without a first line is of a version that wrote none. */
export const isOf = (inbox: string, text: string): boolean =>
  !text.startsWith('inbox ') || text.startsWith(headOf(inbox))

/** Reads the complete lines of a file, and ignores a truncated one. */
export function readPosition(text: string): { last: number | null; unanswered: number | null } {
  let last: number | null = null
  let unanswered: number | null = null
  for (const [, word, digits] of text.matchAll(/^(sent|done) (\d{1,15})\n/gm)) {
    last = Number(digits)
    unanswered = word === 'sent' ? last : null
  }
  return { last, unanswered }
}
