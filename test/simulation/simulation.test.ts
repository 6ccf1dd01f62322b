import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { PLANTS } from './plants.ts'
import { runBuyers, runService } from './pool.ts'
import { PLANTS as BUYERS_PLANTS } from './purchases/plants.ts'

/** `npm run simulate` runs more, and other seeds, and looks for every planted mistake. */
const RUNS = 100
const BUYERS_RUNS = 40
const THREADS = 2

test('no promise is broken by kills, lost answers, loss of power, slow nodes and clocks that jump', async () => {
  const broken: unknown[] = []
  let requests = 0
  const { ended } = await runService({
    firstSeed: 1,
    runs: RUNS,
    threads: THREADS,
    onResult(result) {
      requests += result.requests
      const [first] = result.violations
      if (first) broken.push({ seed: result.seed, first })
      return true
    },
  })
  assert.deepEqual(broken, [])
  assert.equal(ended, RUNS)
  assert.ok(requests > 50 * RUNS, `only ${requests} requests`)
})

test('no buyer pays twice, too much or for nothing, whatever services, wallets and kills do', async () => {
  const broken: unknown[] = []
  let paid = 0
  const { ended } = await runBuyers({
    firstSeed: 1,
    runs: BUYERS_RUNS,
    threads: THREADS,
    onResult({ seed, violations: [first], paid: payments }) {
      paid += payments
      if (first) broken.push({ seed, first })
      return true
    },
  })
  assert.deepEqual(broken, [])
  assert.equal(ended, BUYERS_RUNS)
  assert.ok(paid > BUYERS_RUNS / 2, `only ${paid} payments`)
})

test('the same seed gives the same run, however often the loop of the machine turns meanwhile', async () => {
  const SAME = 2
  const fingerprints = async (options: { threads: number; eventsPerTurn?: number }) => {
    const bySeed: string[] = []
    await runService({
      firstSeed: 40,
      runs: SAME,
      ...options,
      onResult({ seed, fingerprint }) {
        bySeed[seed - 40] = fingerprint
        return true
      },
    })
    return bySeed
  }
  const once = await fingerprints({ threads: 1 })
  assert.deepEqual(await fingerprints({ threads: 2, eventsPerTurn: 1 }), once)
  assert.equal(new Set(once).size, SAME)
})

test('each mistake that is planted has a place in the source', async () => {
  for (const { file, text } of [...PLANTS, ...BUYERS_PLANTS]) {
    const source = await readFile(new URL(`../../src/${file}`, import.meta.url), 'utf8')
    assert.equal(source.split(text).length, 2, `${file}: ${text}`)
  }
})
