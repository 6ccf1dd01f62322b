/** The CPU time of each answer under load. On a busy machine, it says more than a rate. */
import type { Measured } from './load.ts'

export type Cost = {
  /** Runs `work`, and adds its measurement. */
  during(work: () => Promise<Measured>): Promise<Measured>
  /** A figure for each clock, in microseconds per answer. */
  line(): string
}

/** @param clocks each returns a CPU time in milliseconds. */
export function createCost(clocks: (() => number)[]): Cost {
  const used = clocks.map(() => 0)
  let answers = 0
  return {
    async during(work) {
      const before = clocks.map((clock) => clock())
      const measured = await work()
      for (const [i, clock] of clocks.entries()) {
        used[i] = (used[i] ?? 0) + clock() - (before[i] ?? 0)
      }
      answers += measured.count
      return measured
    },
    line: () => `${used.map((ms) => Math.round((1000 * ms) / answers)).join(' + ')} µs`,
  }
}
