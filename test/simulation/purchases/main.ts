/** `npm run simulate:buyers -- --runs 1000`: buyers, wallets and services from a seed. docs/internals/testing.md has the rest. */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { PLANTS } from './plants.ts'
import { runBuyers } from './pool.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '1000' },
    threads: { type: 'string', default: String(availableParallelism()) },
    plants: { type: 'boolean', default: false },
    plant: { type: 'string' },
  },
})
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const range = {
  firstSeed: Number(values.seed),
  runs: Number(values.runs),
  threads: Number(values.threads),
}

for (const { name, breaks } of values.plants ? PLANTS : []) {
  let finder: number | null = null
  await runBuyers({
    ...{ ...range, plant: name },
    onResult({ seed, violations }) {
      const isFound = violations.some(({ promise }) => breaks.includes(promise))
      if (isFound) finder = seed
      return !isFound
    },
  })
  say(finder === null ? `NOT FOUND in ${range.runs} runs: ${name}` : `seed ${finder}: ${name}`)
  if (finder === null) process.exitCode = 1
}
if (!values.plants) {
  const total = { paid: 0, delivered: 0, broken: 0 }
  const startedAt = performance.now()
  const { ended } = await runBuyers({
    ...{ ...range, plant: values.plant ?? null },
    onResult({ seed, violations, paid, delivered }) {
      total.paid += paid
      total.delivered += delivered
      if (violations.length > 0) total.broken++
      for (const { promise, what } of violations) say(`seed ${seed}: ${promise}: ${what}`)
      return true
    },
  })
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  say(
    `${ended} runs in ${seconds} s, ${total.paid} payments, ${total.delivered} delivered: ${total.broken} broke a promise`,
  )
  if (total.broken > 0) process.exitCode = 1
}
