/**
 * `npm run simulate -- --seed 7 --runs 1000`: runs the service under a seeded scheduler, and prints each seed that
 * breaks a promise. docs/internals/testing.md says what is simulated.
 */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { PLANTS } from './plants.ts'
import { runPool } from './pool.ts'

const SHOWN = 5

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '100' },
    threads: { type: 'string', default: String(availableParallelism()) },
    trace: { type: 'boolean', default: false },
    plant: { type: 'string' },
    plants: { type: 'boolean', default: false },
  },
})
const firstSeed = wholeNumber('--seed', values.seed)
const runs = values.trace ? 1 : wholeNumber('--runs', values.runs)
const threads = wholeNumber('--threads', values.threads)

if (values.plants) await findPlants()
else await findViolations()

async function findViolations(): Promise<void> {
  const plant = values.plant ?? null
  if (plant !== null && !PLANTS.some(({ name }) => name === plant)) {
    throw new Error(`no such plant; there are: ${PLANTS.map(({ name }) => `\n  ${name}`).join('')}`)
  }
  const startedAt = performance.now()
  const total = { broken: 0, events: 0, requests: 0, simulatedMs: 0 }
  const ended = await runPool({
    ...{ firstSeed, runs, threads, plant, isTraced: values.trace },
    onResult({ seed, violations, fingerprint, trace, logged, ...counts }) {
      total.events += counts.events
      total.requests += counts.requests
      total.simulatedMs += counts.simulatedMs
      if (values.trace) say([...logged.filter(isWarning), ...trace].join('\n'))
      if (violations.length > 0 || values.trace) say(`seed ${seed} (${fingerprint})`)
      if (violations.length === 0) return true
      total.broken++
      for (const { promise, what } of violations.slice(0, SHOWN)) say(`  ${promise}: ${what}`)
      if (violations.length > SHOWN) say(`  and ${violations.length - SHOWN} more`)
      return true
    },
  })
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
  const days = (total.simulatedMs / 86_400_000).toFixed(1)
  const result =
    `${ended} runs in ${seconds} s (${days} simulated days, ${total.requests} requests, ${total.events} events): ` +
    `${total.broken} broke a promise`
  say(result)
  if (total.broken > 0) {
    say('Run one again, with all that happens: npm run simulate -- --trace --seed <seed>')
    process.exitCode = 1
  }
}

/** Plants each mistake in turn, and says by which seed it was found. */
async function findPlants(): Promise<void> {
  for (const { name, breaks } of PLANTS) {
    let found: number | null = null
    const others = new Set<string>()
    const ended = await runPool({
      ...{ firstSeed, runs, threads, plant: name },
      onResult({ seed, violations }) {
        for (const { promise } of violations) {
          if (breaks.includes(promise)) found = Math.min(found ?? seed, seed)
          else others.add(promise)
        }
        return found === null
      },
    })
    const also = others.size > 0 ? `; also broken: ${[...others].join(', ')}` : ''
    say(
      `${found === null ? 'NOT FOUND' : 'found'} in ${ended} runs: ${name} (${breaks.join(', ')}${also})`,
    )
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
