/** The simulation finds mistakes that are planted. `npm run simulate -- --plants` looks for all of them. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { PLANTS } from './plants.ts'
import { runPool } from './pool.ts'
import { PLANTS as BUYERS_PLANTS } from './purchases/plants.ts'
import { runBuyers } from './purchases/pool.ts'

const THREADS = 2

suite('a mistake that is planted', () => {
  const QUICK = [
    'a credential is not compared with its payment hash',
    'a read is given and not spent',
    'a ping is counted twice',
  ]
  for (const plant of PLANTS.filter(({ name }) => QUICK.includes(name))) {
    test(`a mistake that is planted is found: ${plant.name}`, async () => {
      const broken = new Set<string>()
      await runPool({
        ...{ firstSeed: 1, runs: 60, threads: THREADS, plant: plant.name },
        onResult({ violations }) {
          for (const { promise } of violations) broken.add(promise)
          return !plant.breaks.some((promise) => broken.has(promise))
        },
      })
      assert.ok(
        plant.breaks.some((promise) => broken.has(promise)),
        [...broken].join(', '),
      )
    })
  }
})

suite('a mistake that is planted into the SDK', () => {
  const QUICK = ['the price is not compared with the catalogue', 'a repeat begins anew']
  for (const { name, breaks } of BUYERS_PLANTS.filter((plant) => QUICK.includes(plant.name))) {
    test(`a mistake that is planted into the SDK is found: ${name}`, async () => {
      const { isStopped } = await runBuyers({
        ...{ firstSeed: 1, runs: 200, threads: THREADS, plant: name },
        onResult: ({ violations }) => !violations.some(({ promise }) => breaks.includes(promise)),
      })
      assert.ok(isStopped)
    })
  }
})
