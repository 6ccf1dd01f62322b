/**
 * The test runner that Stryker loads, in processes of its own. Each loads the room's tests once and then runs, for
 * each mutant, those that reach it, which takes milliseconds. A mutant of what runs while a module loads (a table, a
 * pattern) needs a new process.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { basename, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { countedAs } from './counted-as.ts'
import { importersOf } from './importers.ts'
import type * as Collected from './node-test.ts'
import { hasFailed, type Outcome, runTests } from './run-tests.ts'

/** Where Stryker's instrumented code reads which mutant is on, and counts which it passes. */
type Namespace = {
  activeMutant?: string | undefined
  currentTestId?: string | undefined
  hitCount?: number | undefined
  hitLimit?: number | undefined
  mutantCoverage?: Coverage
}
type Counts = Record<string, number>
type Coverage = { static: Counts; perTest: Record<string, Counts> }
type MutantRun = {
  activeMutant: { id: string }
  sandboxFileName: string
  testFilter?: string[]
  hitLimit?: number
  mutationActivation?: string
}
type Options = { mayfly: { tests: string[] } }

const NODE_TEST = new URL('node-test.ts', import.meta.url).href
/** What the tests import, and what they get. */
const STAND_INS: Record<string, string> = {
  'node:test': NODE_TEST,
  'fast-check': new URL('fast-check.ts', import.meta.url).href,
}
/** A test that computes for longer is asked only about mutants that few other tests reach. */
const SLOW_CPU_MS = 300
const FEW_TESTS = 5
/** Stryker stops a loop after a hundred times of its turns in all tests. Ten times are enough, without a search. */
const HIT_FACTOR = 0.1
/** Fewer turns may be those of a test that asks again and again. */
const LOOP_HITS = 10_000
/** What a test waits for comes at once, or a mutant took it away. `until` would wait longer. */
const PATIENCE_MS = 8_000
/** A test that takes so many times longer than without a mutant, and this long besides, waits for what never comes. */
const WAIT_FACTOR = 20
const WAIT_MS = 10_000
/** Written by the first process, of which the others learn how long each test takes. */
const DURATIONS = 'mutation-durations.json'
type Duration = { ms: number; cpuMs: number }
const UNKNOWN: Duration = { ms: 0, cpuMs: 0 }

const namespace: Namespace = {}
Object.assign(globalThis, { __stryker__: namespace })

createRunner.inject = ['options'] as const
export const strykerPlugins = [{ kind: 'TestRunner', name: 'mayfly', factory: createRunner }]
export const strykerValidationSchema = { properties: { mayfly: { type: 'object' } } }

function createRunner(options: Options) {
  const loaded = new Map<string, Collected.Test[]>()
  let durations: Record<string, Duration> | undefined
  let runs = 0
  /** A mutant left something behind that fails a test without it. */
  let isPoisoned = false

  return {
    capabilities: () => ({ reloadEnvironment: false }),
    init: () => installHooks(),
    dryRun,
    mutantRun,
  }

  async function dryRun() {
    for (const file of options.mayfly.tests) await load(file)
    const tests = [...loaded.values()].flat()
    const run = tests.filter(({ isSkipped }) => !isSkipped)
    const first = await runTests(run, begins, { isBailing: false })
    const coverage = readCoverage(tests)
    // Tests run again and again in this process, so each must also pass a second time.
    const second = await runTests(run, begins, { isBailing: false })
    const msOf = new Map<string, number>()
    for (const { test, ms } of [...first, ...second]) {
      msOf.set(test.id, (msOf.get(test.id) ?? 0) + ms)
    }
    const taken = second.map(({ test, ms, cpuMs }) => [test.id, { ms, cpuMs }])
    writeFileSync(DURATIONS, JSON.stringify(Object.fromEntries(taken)))
    const failures = new Map(
      [...first, ...second].map((outcome) => [outcome.test.id, outcome.failure]),
    )
    for (const { test, failure } of first) if (failure) failures.set(test.id, failure)
    return {
      status: 'complete',
      tests: tests.map(({ id, file, isSkipped }) => ({
        id,
        name: id,
        fileName: join(process.cwd(), file),
        timeSpentMs: Math.ceil(msOf.get(id) ?? 0),
        ...(failures.get(id) === undefined
          ? { status: isSkipped ? 2 : 0 }
          : { status: 1, failureMessage: failures.get(id) }),
      })),
      mutantCoverage: coverage,
    }
  }

  async function mutantRun(run: MutantRun) {
    // Stryker then starts another process and tries there.
    if (isPoisoned) throw new Error('this process is to be replaced')
    runs++
    namespace.hitCount = 0
    const hitLimit =
      run.hitLimit === undefined ? undefined : Math.max(LOOP_HITS, run.hitLimit * HIT_FACTOR)
    namespace.hitLimit = hitLimit
    const outcomes =
      run.testFilter === undefined
        ? await runWhileLoading(run.activeMutant, relative(process.cwd(), run.sandboxFileName))
        : await runLoaded(run.activeMutant, new Set(run.testFilter))
    const hits = namespace.hitCount
    namespace.activeMutant = undefined
    namespace.hitCount = undefined
    if (hitLimit !== undefined && hits > hitLimit) {
      return { status: 'timeout', reason: `it ran ${hits} times` }
    }
    const failed = outcomes.find(hasFailed)
    if (failed === undefined) return { status: 'survived', nrOfTests: outcomes.length }
    if (run.testFilter !== undefined) await checkUnharmed(failed)
    if (failed.isLeftRunning) isPoisoned = true
    if (failed.isEndless) return { status: 'timeout', reason: failed.test.id }
    return {
      status: 'killed',
      killedBy: [failed.test.id],
      failureMessage: failed.failure ?? '',
      nrOfTests: outcomes.length,
    }
  }

  /** The shortest first, because most mutants fail many tests. */
  async function runLoaded(mutant: { id: string }, wanted: Set<string>): Promise<Outcome[]> {
    const files = options.mayfly.tests.filter((file) =>
      [...wanted].some((id) => id.startsWith(`${file} › `)),
    )
    for (const file of files) if (!loaded.has(file)) await load(file)
    const tests = [...loaded.values()].flat().filter(({ id }) => wanted.has(id))
    const cpuMs = (test: Collected.Test) => durationOf(test).cpuMs
    const sorted = tests.toSorted((a, b) => durationOf(a).ms - durationOf(b).ms)
    namespace.activeMutant = mutant.id
    return runTests(
      sorted.filter((test, i) => i < FEW_TESTS || cpuMs(test) < SLOW_CPU_MS),
      begins,
      { isBailing: true, maxWaitMs },
    )
  }

  function durationOf({ id }: Collected.Test): Duration {
    durations ??= JSON.parse(readFileSync(DURATIONS, 'utf8')) as Record<string, Duration>
    return durations[id] ?? UNKNOWN
  }

  function maxWaitMs(test: Collected.Test): number {
    return WAIT_MS + WAIT_FACTOR * durationOf(test).ms
  }

  /** Begins with the files that are named like the mutated one. The others are loaded when these pass. */
  async function runWhileLoading(mutant: { id: string }, source: string): Promise<Outcome[]> {
    isPoisoned = true
    namespace.activeMutant = mutant.id
    const name = basename(source, '.ts')
    const files = importersOf([source], options.mayfly.tests)
    const alike = files.filter((file) => file.includes(name))
    const outcomes: Outcome[] = []
    for (const file of [...alike, ...files.filter((one) => !alike.includes(one))]) {
      try {
        await load(file)
      } catch (error) {
        const test = { id: file, file, body: () => {}, isSkipped: false, suites: [] }
        return [{ test, ms: 0, cpuMs: 0, failure: `does not load: ${String(error)}` }]
      }
      const tests = (loaded.get(file) ?? []).filter(({ isSkipped }) => !isSkipped)
      outcomes.push(...(await runTests(tests, begins, { isBailing: true })))
      if (outcomes.some(hasFailed)) break
    }
    return outcomes
  }

  /** The failure counts only if the test passes without the mutant, in this process or, before, in a new one. */
  async function checkUnharmed({ test }: Outcome): Promise<void> {
    const again = await runTests([test], begins, { isBailing: true, maxWaitMs })
    if (!again.some(hasFailed)) return
    isPoisoned = true
    if (runs > 1) throw new Error('an earlier mutant may have left something behind')
  }

  async function load(file: string): Promise<void> {
    const { collect } = (await import(NODE_TEST)) as typeof Collected
    const url = pathToFileURL(join(process.cwd(), file)).href
    loaded.set(file, await collect(file, () => import(url)))
  }

  /**
   * What each test reaches, the hooks of its suites included. Static is only what no test reaches: a mutant of a
   * function that also runs while a module loads is tested in the tests alone, which can miss a kill and never
   * invents one.
   */
  function readCoverage(tests: Collected.Test[]): Coverage {
    const { static: loading = {}, perTest = {} } = structuredClone(
      namespace.mutantCoverage ?? {},
    ) as Partial<Coverage>
    const reachedBy = ({ id, suites }: Collected.Test) =>
      sum([...suites.map((suite) => perTest[`hooks: ${suite.id}`] ?? {}), perTest[id] ?? {}])
    const byTest = Object.fromEntries(tests.map((test) => [test.id, reachedBy(test)]))
    const reached = new Set(Object.values(byTest).flatMap(Object.keys))
    const ofTestModules = Object.entries(perTest).filter(([id]) => id.startsWith('loads: '))
    const others = sum([loading, ...ofTestModules.map(([, counts]) => counts)])
    const unreached = Object.entries(others).filter(([id]) => !reached.has(id))
    return { static: Object.fromEntries(unreached), perTest: byTest }
  }
}

function begins(id: string): void {
  namespace.currentTestId = id
}

function sum(all: Counts[]): Counts {
  const result: Counts = {}
  for (const counts of all) {
    for (const [id, count] of Object.entries(counts)) result[id] = (result[id] ?? 0) + count
  }
  return result
}

/** Gives the tests our `node:test`, and tells what the body of a test's module reaches from what a source's does. */
function installHooks(): void {
  process.env.TEST_PATIENCE_MS = String(PATIENCE_MS)
  const sandbox = pathToFileURL(`${process.cwd()}/`).href
  registerHooks({
    resolve(specifier, context, next) {
      const ours = context.parentURL?.startsWith(sandbox) ? STAND_INS[specifier] : undefined
      return ours === undefined ? next(specifier, context) : { url: ours, shortCircuit: true }
    },
    load(url, context, next) {
      const loaded = next(url, context)
      if (!url.startsWith(sandbox) || !url.endsWith('.ts') || url.includes('/node_modules/'))
        return loaded
      const path = url.slice(sandbox.length)
      const id = path.startsWith('test/') ? `loads: ${path}` : undefined
      return {
        ...loaded,
        source: countedAs(id, String(loaded.source)),
      }
    },
  })
}
