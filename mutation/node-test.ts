/**
 * Stands in for `node:test` while mutants are tested: it collects the tests of a file instead of running them, so
 * that one process runs any of them again and again, once for each mutant. It has what the tests of this project
 * use. A process for each file and mutant, which is what runners of TAP do, would take days.
 */
import { mock as realMock } from 'node:test'

type Work = (...parameters: never[]) => unknown
type Options = { skip?: boolean | string; todo?: boolean | string }

export type Test = { id: string; file: string; body: Work; isSkipped: boolean; suites: Suite[] }
export type Suite = { id: string; before: Work[]; beforeEach: Work[]; afterEach: Work[] }

export const mock = realMock

const ids = new Set<string>()
/** Those that the line being loaded stands in, the file itself first. */
let suites: Suite[] = []
let tests: Test[] = []
let file = ''

/** The tests that `load` registers, which belong to that file. */
export async function collect(name: string, load: () => Promise<unknown>): Promise<Test[]> {
  file = name
  tests = []
  suites = [emptySuite(name)]
  await load()
  suites = []
  return tests
}

export function describe(name: string, ...rest: [Options, Work] | [Work]): void {
  const { options, body } = split(rest)
  if (options.skip) return
  const outer = suites
  suites = [...outer, emptySuite(`${current().id} › ${name}`)]
  if (body() instanceof Promise) throw new Error(`the suite ${current().id} is asynchronous`)
  suites = outer
}

export function test(name: string, ...rest: [Options, Work] | [Work]): void {
  const { options, body } = split(rest)
  const path = `${current().id} › ${name}`
  let id = path
  for (let n = 2; ids.has(id); n++) id = `${path} (${n})`
  ids.add(id)
  tests.push({ id, file, body, isSkipped: Boolean(options.skip ?? options.todo), suites })
}

export const before = (work: Work): void => void current().before.push(work)
/** Nothing: what a suite's tests share stays for their next run, and ends with the process. */
export const after = (_work: Work): void => {}
export const beforeEach = (work: Work): void => void current().beforeEach.push(work)
export const afterEach = (work: Work): void => void current().afterEach.push(work)
export { describe as suite, test as it }
// biome-ignore lint/style/noDefaultExport: node:test has one.
export default test

function split(rest: [Options, Work] | [Work]): { options: Options; body: () => unknown } {
  const [first, second] = rest
  if (typeof first === 'function') return { options: {}, body: first as () => unknown }
  return { options: first, body: second as () => unknown }
}

function current(): Suite {
  const suite = suites.at(-1)
  if (suite === undefined) throw new Error('a test was declared after its file was loaded')
  return suite
}

function emptySuite(id: string): Suite {
  return { id, before: [], beforeEach: [], afterEach: [] }
}
