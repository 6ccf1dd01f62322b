/** fast-check as the tests of mutants see it: fewer runs, always the same ones, and no search for the smallest failure. */
import fc from 'fast-check'

/** A mutant that only some of many thousand runs notice is one that `npm test` notices once in a while. */
const MAX_RUNS = 100
const SEED = 1

function assertProperty<Ts>(
  property: Parameters<typeof fc.assert<Ts>>[0],
  parameters?: Parameters<typeof fc.assert<Ts>>[1],
): ReturnType<typeof fc.assert<Ts>> {
  const numRuns = Math.min(parameters?.numRuns ?? MAX_RUNS, MAX_RUNS)
  return fc.assert(property, { ...parameters, numRuns, seed: SEED, endOnFailure: true })
}

// biome-ignore lint/style/noDefaultExport: fast-check has one, and the tests import it.
export default { ...fc, assert: assertProperty }
