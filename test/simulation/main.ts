/**
 * `npm run simulate -- --seed 7 --runs 1000`: runs the service under a seeded scheduler, or its buyers with
 * `npm run simulate:buyers`, and prints each seed that breaks a promise. docs/internals/testing.md has the rest.
 */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { PLANTS } from './plants.ts'
import { type Ended, runBuyers, runService } from './pool.ts'
import { PLANTS as BUYERS_PLANTS } from './purchases/plants.ts'

const SHOWN = 5

type Result = { seed: number; violations: { promise: string; what: string }[] }

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '100' },
    threads: { type: 'string', default: String(availableParallelism()) },
    buyers: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    plant: { type: 'string' },
    plants: { type: 'boolean', default: false },
  },
})
const range = {
  firstSeed: wholeNumber('--seed', values.seed),
  runs: values.trace ? 1 : wholeNumber('--runs', values.runs),
  threads: wholeNumber('--threads', values.threads),
}
const plants: readonly { name: string; breaks: readonly string[] }[] = values.buyers
  ? BUYERS_PLANTS
  : PLANTS

if (values.plants) await findPlants()
else await findViolations(values.plant ?? null)

/** Runs the seeds with a mistake, or without one. */
function run(plant: string | null, onResult: (result: Result) => boolean): Promise<Ended> {
  const options = { ...range, plant, onResult }
  if (values.buyers) return runBuyers(options)
  return runService({
    ...options,
    isTraced: values.trace,
    onResult(result) {
      const { seed, fingerprint, trace, logged } = result
      if (values.trace) {
        say([...logged.filter(isWarning), ...trace, `seed ${seed} (${fingerprint})`].join('\n'))
      }
      return onResult(result)
    },
  })
}

async function findViolations(plant: string | null): Promise<void> {
  if (plant !== null && !plants.some(({ name }) => name === plant)) {
    throw new Error(`no such plant; there are: ${plants.map(({ name }) => `\n  ${name}`).join('')}`)
  }
  const startedAt = performance.now()
  let broken = 0
  const totals = new Map<string, number>()
  const { ended } = await run(plant, ({ seed, violations, ...rest }) => {
    for (const [what, count] of Object.entries(rest)) {
      if (typeof count === 'number') totals.set(what, (totals.get(what) ?? 0) + count)
    }
    if (violations.length > 0) {
      broken++
      say(`seed ${seed}`)
    }
    for (const { promise, what } of violations.slice(0, SHOWN)) say(`  ${promise}: ${what}`)
    if (violations.length > SHOWN) say(`  and ${violations.length - SHOWN} more`)
    return true
  })
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
  const words = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  const counted = [...totals]
    .map(([name, count]) => `${Math.round(count)} ${words(name)}`)
    .join(', ')
  say(`${ended} runs in ${seconds} s (${counted}): ${broken} broke a promise`)
  if (broken > 0) {
    if (!values.buyers)
      say('Run one again, with all that happens: npm run simulate -- --trace --seed <seed>')
    process.exitCode = 1
  }
}

/** Plants each mistake in turn, and says by which seed it was found. */
async function findPlants(): Promise<void> {
  for (const { name, breaks } of plants) {
    let found: number | null = null
    const others = new Set<string>()
    const { ended } = await run(name, ({ seed, violations }) => {
      for (const { promise } of violations) {
        if (breaks.includes(promise)) found = Math.min(found ?? seed, seed)
        else others.add(promise)
      }
      return found === null
    })
    const also = others.size > 0 ? `; also broken: ${[...others].join(', ')}` : ''
    const how = found === null ? 'NOT FOUND' : `found by seed ${found}`
    say(`${how} in ${ended} runs: ${name} (${breaks.join(', ')}${also})`)
    if (found === null) process.exitCode = 1
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 1)
    throw new Error(`${name} must be a whole number from 1`)
  return number
}

/** A line of the service's log that an operator would look at. */
function isWarning(line: string): boolean {
  return (JSON.parse(line) as { level: number }).level >= 40
}
