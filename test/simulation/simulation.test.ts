import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { Violation } from './ledger.ts'
import { PLANTS } from './plants.ts'
import { runPool } from './pool.ts'
import type { RunResult } from './run.ts'

/** `npm run simulate` runs more, and other seeds. */
const RUNS = 100
const THREADS = 2

test('no promise is broken by kills, lost answers, loss of power, slow nodes and clocks that jump', async () => {
  const broken: (Pick<RunResult, 'seed'> & { first: Violation | undefined })[] = []
  let requests = 0
  const ended = await runPool({
    ...{ firstSeed: 1, runs: RUNS, threads: THREADS },
    onResult(result) {
      requests += result.requests
      if (result.violations.length > 0)
        broken.push({ seed: result.seed, first: result.violations[0] })
      return true
    },
  })
  assert.deepEqual(broken, [])
  assert.equal(ended, RUNS)
  assert.ok(requests > 50 * RUNS, `only ${requests} requests`)
})

test('the same seed gives the same run, however often the loop of the machine turns meanwhile', async () => {
  const SAME = 2
  const fingerprints = async (options: { threads: number; eventsPerTurn?: number }) => {
    const bySeed: string[] = []
    await runPool({
      ...{ firstSeed: 40, runs: SAME, ...options },
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
  for (const { file, text } of PLANTS) {
    const source = await readFile(new URL(`../../src/${file}`, import.meta.url), 'utf8')
    assert.equal(source.split(text).length, 2, `${file}: ${text}`)
  }
})
