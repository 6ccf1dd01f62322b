/** The share of the processor that a thread gets beside others that want it. */
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { basename } from 'node:path'

/** Beside a thread that does not give way, such a one gets about a tenth of a processor. */
const GIVING_WAY = 10

/**
 * The thread that calls this gives way from now on, for good: without privileges no thread can undo it. It needs
 * Linux, where each thread has a priority of its own. Elsewhere nothing happens.
 */
export function giveWay(): void {
  try {
    // `PROCESS/task/THREAD`
    setPriority(Number(basename(readlinkSync('/proc/thread-self'))), GIVING_WAY)
  } catch {
    // The threads share the processors evenly, which only makes the others a little slower.
  }
}
