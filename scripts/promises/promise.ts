/** A promise of docs/promises.md, and how it is shown. */
import type { PromiseName } from '../../test/simulation/ledger.ts'

export type Promised = {
  says: string
  /** Invariants of the simulation (`test/simulation/ledger.ts`). */
  simulated?: readonly PromiseName[]
  /**
   * Titles of tests by the file that has them, as they stand there: the generator looks for them. `…` stands for
   * each `${…}` of a title.
   */
  tests?: Readonly<Record<string, readonly string[]>>
}

export type Section = {
  title: string
  promises: readonly Promised[]
  /** What a reader could take for granted, and must not. */
  not: readonly string[]
}
