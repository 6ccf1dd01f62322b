/**
 * Foresees which pings fill the row of a monitor, from what this instance has sent and what the store said last. It
 * may be wrong, because other instances and runs fill the row too. Pings that are wrongly said to fill it cost two
 * statements that do nothing; the store refuses the others, and they are sent again.
 */
import { RECENT_HEARTBEATS } from './store.ts'

/** How many pings were sent, and the difference between that and the loose times, but for whole chunks. */
type Sent = { count: number; difference: number | null }

export type Filling = {
  /**
   * Counts pings that are sent now. `isFilled`: the row may not hold them. `filed` takes how many times are loose
   * after them, or null if they were refused.
   */
  add(job: object, count: number): { isFilled: boolean; filed: (loose: number | null) => void }
}

export function createFilling(): Filling {
  /** As long as the facts of a monitor are remembered. */
  const known = new WeakMap<object, Sent>()

  return {
    add(job, count) {
      const sent = known.get(job) ?? { count: 0, difference: null }
      known.set(job, sent)
      const isFilled =
        sent.difference === null ||
        looseOf(sent.count + sent.difference) + count > RECENT_HEARTBEATS
      sent.count += count
      const sentUntil = sent.count
      return {
        isFilled,
        // The pings that were sent since come after these.
        filed(loose) {
          sent.difference = loose === null ? null : loose - sentUntil
        },
      }
    },
  }
}

/** From 1 to a full row. */
const looseOf = (timesSent: number): number => ((timesSent - 1) % RECENT_HEARTBEATS) + 1
