/** The days of UTC on the machine, by which a command counts what it has spent. */
import { setTimeout as wait } from 'node:timers/promises'

const DAY = 86_400_000
/** No test of a command takes as long. */
const LONGEST_MS = 120_000

/** Resolves at once, but for the last minutes of a day: what one test pays belongs to one day. */
export async function oneDay(): Promise<void> {
  const left = DAY - (Date.now() % DAY)
  if (left < LONGEST_MS) await wait(left)
}
