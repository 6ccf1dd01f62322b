import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { PLANTS } from './plants.ts'
import { runBuyers } from './pool.ts'
import type { Violation } from './run.ts'

/** `npm run simulate:buyers` runs more, and looks for every planted mistake. */
const RUNS = 40
const THREADS = 2

test('no buyer pays twice, too much or for nothing, whatever services, wallets and kills do', async () => {
  const broken: { seed: number; first: Violation | undefined }[] = []
  let paid = 0
  const { ended } = await runBuyers({
    ...{ firstSeed: 1, runs: RUNS, threads: THREADS, plant: null },
    onResult({ seed, violations, paid: payments }) {
      paid += payments
      if (violations.length > 0) broken.push({ seed, first: violations[0] })
      return true
    },
  })
  assert.deepEqual(broken, [])
  assert.equal(ended, RUNS)
  assert.ok(paid > RUNS / 2, `only ${paid} payments`)
})

test('each mistake that can be planted into the SDK is one place of it', async () => {
  for (const { name, file, text } of PLANTS) {
    const source = await readFile(new URL(`../../../src/${file}`, import.meta.url), 'utf8')
    assert.equal(source.split(text).length, 2, name)
  }
})
