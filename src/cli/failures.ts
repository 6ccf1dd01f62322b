/**
 * The events of an inbox that a receiver did not take, on disk, so that `catch replay --failed` can send them
 * again. The file is only appended to, one line at a time, so that a listener and a replay may both write:
 *
 * - `inbox ID` is the first line, as in the position.
 * - `failed N` is flushed before the position moves on: a kill loses no failure.
 * - `over N` strikes it out: the receiver took it, or it was deleted.
 *
 * It never has more lines than twice the requests of the plan.
 */
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { overwrite, readIfThere } from './data-folder.ts'
import { headOf, isOf } from './position.ts'

export type Failures = {
  /** How many are not struck out. */
  count(): number
  failed(sequence: number): void
  over(sequence: number): void
  close(): void
}

/** Opens the file for an inbox, for the listener that holds the lock. */
export function openFailures(file: string, inbox: string): Failures {
  const text = readIfThere(file)
  if (text === null || !isOf(inbox, text)) overwrite(file, headOf(inbox))
  return append(file, inbox)
}

/** What has failed and is not struck out, in order, and a way to strike it out. */
export function openFailed(
  file: string,
  inbox: string,
): { sequences: number[]; failures: Failures } | null {
  const sequences = failedIn(readIfThere(file) ?? '', inbox)
  return sequences.length === 0 ? null : { sequences, failures: append(file, inbox) }
}

function append(file: string, inbox: string): Failures {
  const text = readIfThere(file) ?? ''
  const open = new Set(failedIn(text, inbox))
  const descriptor = openSync(file, 'a', 0o600)
  // A line that a full disk cut short stays alone.
  if (text !== '' && !text.endsWith('\n')) writeSync(descriptor, '\n')
  const record = (line: string): void => {
    writeSync(descriptor, line)
    fdatasyncSync(descriptor)
  }
  return {
    count: () => open.size,
    failed(sequence) {
      record(`failed ${sequence}\n`)
      open.add(sequence)
    },
    over(sequence) {
      record(`over ${sequence}\n`)
      open.delete(sequence)
    },
    close: () => closeSync(descriptor),
  }
}

/** What has failed and is not struck out, in order. Ignores a truncated line. */
export function failedIn(text: string, inbox: string): number[] {
  const open = new Set<number>()
  if (!isOf(inbox, text)) return []
  for (const [, word, digits] of text.matchAll(/^(failed|over) (\d{1,15})\n/gm)) {
    if (word === 'failed') open.add(Number(digits))
    else open.delete(Number(digits))
  }
  return [...open].sort((a, b) => a - b)
}
