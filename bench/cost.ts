/** What each answer under load costs in CPU time. Says more than a rate where others are busy too. */
import type { Measured } from './load.ts'

export type Cost = {
  /** Adds one measurement, made by `work`. */
  during(work: () => Promise<Measured>): Promise<Measured>
  /** One figure for each clock, in microseconds an answer. */
  line(): string
}

/** Clocks count CPU time in milliseconds. */
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
