/** The simulation finds mistakes that are planted. `npm run simulate -- --plants` looks for all of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PLANTS } from './plants.ts'
import { type Options, runBuyers, runService } from './pool.ts'
import { PLANTS as BUYERS_PLANTS } from './purchases/plants.ts'

type Run = (options: Options<{ violations: { promise: string }[] }>) => ReturnType<typeof runBuyers>
const plants: readonly { name: string; breaks: readonly string[] }[] = [...PLANTS, ...BUYERS_PLANTS]

/** Those that few runs find, and how many at most. */
const QUICK: [name: string, run: Run, runs: number][] = [
  ['a credential is not compared with its payment hash', runService, 60],
  ['a read is given and not spent', runService, 60],
  ['a ping is counted twice', runService, 60],
  ['an event is answered before it is on the disk', runService, 150],
  ['the price is not compared with the catalogue', runBuyers, 200],
  ['a repeat begins anew', runBuyers, 200],
]

for (const [name, run, runs] of QUICK) {
  test(`a mistake that is planted is found: ${name}`, async () => {
    const breaks = plants.find((plant) => plant.name === name)?.breaks ?? []
    const { isStopped } = await run({
      firstSeed: 1,
      runs,
      threads: 2,
      plant: name,
      onResult: ({ violations }) => !violations.some(({ promise }) => breaks.includes(promise)),
    })
    assert.ok(isStopped)
  })
}
