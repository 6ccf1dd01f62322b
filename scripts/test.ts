/**
 * `node scripts/test.ts [--nightly] [folder or file …]`: runs the tests, by default those of each commit (`*.test.ts`),
 * with `--nightly` also those that need real nodes, browsers or many processes (`*.nightly.ts`), and on PostgreSQL
 * also those that only it can pass (`*.postgres.ts`). Prints the time of each folder. Several files share a process,
 * because loading the service takes longer than most files.
 */
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

/** Loading the service takes a process a second, and a processor waits for the last process. */
const FILES_PER_PROCESS = 40
/** These start browsers and nodes. A few files in a process share what they start. */
const SLOW_FOLDERS = ['test/e2e', 'test/web']
const SLOW_FILES_PER_PROCESS = 8
/** They sell from the same nodes, one after another: test/e2e/shared-nodes.ts. */
const SHARE_NODES = ['lnd', 'clients-lnd', 'gate-lnd', 'mcp-lnd', 'wallet-lnd'].map(
  (name) => `test/e2e/${name}.nightly.ts`,
)

/** What these show is so before the store is asked, or in none of its statements: PostgreSQL cannot change it. */
const BEFORE_THE_STORE =
  /^test\/(?:api\/(?:agents|answers-held|catalog|catch-slow-bodies|described|every-route|http.*|order-of-checks|proxies|purchase-rooms|random|simulator|stream-readers)|alerts\/formats|gate\/(?:check-invoice|patterns|provider)|payment\/keys|pulse\/(?:badge|fairness|schedule|settings)|whisper\/reveal-at)\.test\.ts$/

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const CACHE = join(ROOT, '.cache')
/** How long each file took when it last ran: the slowest begin, or the run would end with one at work. */
const DURATIONS = join(CACHE, 'test-durations.json')
const PREPARATION = new URL('test-process.ts', import.meta.url).href
// A cache of compiled code, also for the processes that tests start.
process.env.NODE_COMPILE_CACHE ??= join(CACHE, 'compiled')

const began = performance.now()
const durations = readDurations()
const taken: Record<string, number> = {}
const { positionals: named, values: options } = parseArgs({
  options: { nightly: { type: 'boolean', default: false } },
  allowPositionals: true,
})
// Some tests of each commit then take more hosts.
if (options.nightly) process.env.MAYFLY_TEST_NIGHTLY = '1'
const isPostgres = process.env.MAYFLY_TEST_ENGINE === 'postgres'
if (!options.nightly && !isPostgres) process.env.TEST_IN_MEMORY = '1'
const KINDS = ['test', ...(options.nightly ? ['nightly'] : []), ...(isPostgres ? ['postgres'] : [])]
const files = (named.length > 0 ? named : ['test']).flatMap(testFiles)
if (files.length === 0) throw new Error(`no tests in ${named.join(', ')}`)
mkdirSync(CACHE, { recursive: true })
// A folder of its own, because another run in the same clone may still read its files.
const scratch = mkdtempSync(join(CACHE, 'test-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))
// An exit handler does not run when a signal ends the process.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

// More processes than processors, because processes often wait for a disk or a node.
const results = run({ files: writeBatches(batches()), concurrency: availableParallelism() + 2 })
results.on('test:fail', () => {
  process.exitCode = 1
})
for (const event of ['test:pass', 'test:fail'] as const) {
  results.on(event, ({ file, nesting, details }) => {
    if (nesting === 0 && file !== undefined) addTime(relative(ROOT, file), details.duration_ms)
  })
}
for await (const line of results.compose(spec)) process.stdout.write(line)
writeFileSync(DURATIONS, JSON.stringify({ ...durations, ...taken }))
process.stdout.write(`${shares()}\n`)

function testFiles(path: string): string[] {
  if (path.endsWith('.ts')) return [relative(ROOT, resolve(path))]
  const isLeftOut = (file: string): boolean => isPostgres && BEFORE_THE_STORE.test(file)
  return KINDS.flatMap((kind) => globSync(`${path}/**/*.${kind}.ts`))
    .map((file) => relative(ROOT, resolve(file)))
    .filter((file) => !isLeftOut(file))
}

/** The files of each process, the slowest process first. */
function batches(): string[][] {
  const groups = Object.values(Object.groupBy(files, groupOf))
  return groups
    .flatMap((group = []) => chunks(group.toSorted()))
    .toSorted((a, b) => durationOf(b) - durationOf(a))
}

function groupOf(file: string): string {
  if (SHARE_NODES.includes(file)) return 'nodes'
  const folder = folderOf(file)
  return SLOW_FOLDERS.includes(folder) ? folder : 'others'
}

/** Parts that take about as long as each other. Neighbours load the same parts of the service. */
function chunks(group: string[]): string[][] {
  const isSlow = group.some((file) => groupOf(file) !== 'others')
  const count = Math.ceil(group.length / (isSlow ? SLOW_FILES_PER_PROCESS : FILES_PER_PROCESS))
  const share = durationOf(group) / count
  const parts: string[][] = Array.from({ length: count }, () => [])
  let before = 0
  for (const file of group) {
    parts[Math.min(count - 1, Math.floor((before + msOf(file) / 2) / share))]?.push(file)
    before += msOf(file)
  }
  return parts.filter(({ length }) => length > 0)
}

/** Two files for each process: one imports the tests, which run one after another, and one prepares for them. */
function writeBatches(all: string[][]): string[] {
  return all.map((batch, i) => {
    const name = String(i).padStart(3, '0')
    const imports = batch.map((file) => `import '${pathToFileURL(join(ROOT, file))}'\n`)
    writeFileSync(join(scratch, `${name}.tests.ts`), imports.join(''))
    const file = join(scratch, `${name}.test.ts`)
    // The runner is loaded with the tests, and the preparation comes before it.
    writeFileSync(file, `import '${PREPARATION}'\nawait import('./${name}.tests.ts')\n`)
    return file
  })
}

function durationOf(batch: string[]): number {
  return batch.reduce((sum, file) => sum + msOf(file), 0)
}

/** Without a duration, the longer of two files is the slower one, and those of slow folders are slower. */
function msOf(file: string): number {
  const bytesPerMs = groupOf(file) === 'others' ? 10 : 1
  return durations[file] ?? statSync(join(ROOT, file)).size / bytesPerMs
}

function readDurations(): Record<string, number> {
  try {
    return JSON.parse(readFileSync(DURATIONS, 'utf8')) as Record<string, number>
  } catch {
    return {}
  }
}

function folderOf(file: string): string {
  return file.split('/').slice(0, 2).join('/')
}

function addTime(file: string, ms: number): void {
  taken[file] = (taken[file] ?? 0) + ms
}

/** A line for each folder, the slowest first. Processes run in parallel, so the sum exceeds the real time. */
function shares(): string {
  const folders = new Map<string, number>()
  for (const [file, ms] of Object.entries(taken)) {
    folders.set(folderOf(file), (folders.get(folderOf(file)) ?? 0) + ms / 1000)
  }
  const lines = [...folders]
    .toSorted(([, a], [, b]) => b - a)
    .map(([folder, s]) => `${s.toFixed(0).padStart(6)} s  ${folder}`)
  const all = ((performance.now() - began) / 1000).toFixed(0)
  return [`\nTime in the tests of each folder, of ${all} s in all:`, ...lines].join('\n')
}
