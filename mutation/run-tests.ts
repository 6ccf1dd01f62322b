/** Runs collected tests in this process, one after another, up to the first that fails. */
import { mock } from 'node:test'
import type { Suite, Test } from './node-test.ts'

export type Outcome = {
  test: Test
  ms: number
  cpuMs: number
  failure?: string
  isEndless?: true
  /** Nobody waited for its end, so it may disturb the tests that follow. */
  isLeftRunning?: true
}

/** A test that waits for so long waits for what a mutant took away. One that computes forever is killed by Stryker. */
const MAX_WAIT_MS = 60_000

type How = {
  isBailing: boolean
  /** How long a test may take, if that is known better. */
  maxWaitMs?: (test: Test) => number
}
const ENDLESS = 'it does not end'
const LEFT_RUNNING = 'nobody caught '

/** What nobody caught. It belongs to the test that runs, as in node:test. */
const uncaught: unknown[] = []
let stopWaiting: ((error: Error) => void) | null = null
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    uncaught.push(error)
    stopWaiting?.(new Error(`${LEFT_RUNNING}${String(error)}`))
  })
}

/** Runs `tests`, up to the first that fails if `isBailing`. `begins` is told of each test and each suite's hooks. */
export async function runTests(
  tests: Test[],
  begins: (id: string) => void,
  { isBailing, maxWaitMs = () => MAX_WAIT_MS }: How,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const test of tests) {
    const outcome = await runTest(test, begins, maxWaitMs(test))
    outcomes.push(outcome)
    if (isBailing && hasFailed(outcome)) break
  }
  return outcomes
}

export const hasFailed = (outcome: Outcome): boolean => outcome.failure !== undefined

/** The suites whose `before` ran. What they prepared stays. */
const prepared = new Set<Suite>()

async function runTest(
  test: Test,
  begins: (id: string) => void,
  maxWaitMs: number,
): Promise<Outcome> {
  uncaught.length = 0
  const began = performance.now()
  const cpuBegan = process.cpuUsage()
  const before = await attempt(test.suites.map((suite) => () => prepare(suite, begins)))
  begins(test.id)
  const context = createContext(test.id)
  const { promise: endless, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(ENDLESS)), maxWaitMs)
  // What the error took away may be what the test waits for.
  stopWaiting = reject
  const worked = await attempt([
    ...test.suites.flatMap(({ beforeEach }) => beforeEach).map((hook) => () => call(hook)),
    () => Promise.race([call(test.body, context), endless]),
  ])
  clearTimeout(timer)
  stopWaiting = null
  const ended = await attempt([
    ...context.endings.map((ending) => () => call(ending)),
    ...test.suites.flatMap(({ afterEach }) => afterEach).map((hook) => () => call(hook)),
    () => context.mock.reset(),
    // A rejection that nobody handles is told of after the microtasks.
    () => new Promise((resolve) => setImmediate(resolve)),
  ])
  context.stop()
  const [lost] = uncaught.splice(0).map(String)
  const failure = before ?? worked ?? ended ?? lost
  const ms = performance.now() - began
  const { user, system } = process.cpuUsage(cpuBegan)
  const outcome = { test, ms, cpuMs: (user + system) / 1000 }
  if (failure === undefined) return outcome
  const isEndless = failure.endsWith(ENDLESS)
  const isLeftRunning = isEndless || failure.includes(LEFT_RUNNING)
  return {
    ...outcome,
    failure,
    ...(isEndless ? { isEndless } : {}),
    ...(isLeftRunning ? { isLeftRunning } : {}),
  }
}

async function prepare(suite: Suite, begins: (id: string) => void): Promise<void> {
  if (prepared.has(suite)) return
  prepared.add(suite)
  begins(`hooks: ${suite.id}`)
  for (const hook of suite.before) await call(hook)
}

function createContext(name: string) {
  const endings: (() => unknown)[] = []
  const controller = new AbortController()
  const Tracker = mock.constructor as new () => typeof mock
  return {
    name,
    endings,
    mock: new Tracker(),
    signal: controller.signal,
    after: (ending: () => unknown) => void endings.push(ending),
    diagnostic: () => {},
    stop: () => controller.abort(),
  }
}

function call(work: (...parameters: never[]) => unknown, context?: unknown): unknown {
  return (work as (context?: unknown) => unknown)(context)
}

/** Runs each of `steps`, and answers with the first failure. */
async function attempt(steps: (() => unknown)[]): Promise<string | undefined> {
  let failure: string | undefined
  for (const step of steps) {
    try {
      await step()
    } catch (error) {
      failure ??= error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    }
  }
  return failure
}
