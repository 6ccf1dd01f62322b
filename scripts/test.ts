/**
 * `node scripts/test.ts [folder or file …]`: runs the tests, by default all, and prints the time of each
 * folder. Several files share a process, because loading the service takes longer than most files.
 */
import { globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath, pathToFileURL } from 'node:url'

const FILES_PER_PROCESS = 10
/** These start browsers, nodes and programs and take longest, so they run first, a process for each file. */
const SLOW_FOLDERS = ['test/e2e', 'test/web', 'test/cli']

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const BATCHES = join(ROOT, '.cache/test')
// A cache of compiled code, also for the processes that tests start.
process.env.NODE_COMPILE_CACHE ??= join(ROOT, '.cache/compiled')

const began = performance.now()
const seconds = new Map<string, number>()
const named = process.argv.slice(2)
const files = (named.length > 0 ? named : ['test']).flatMap(testFiles)
if (files.length === 0) throw new Error(`no tests in ${named.join(', ')}`)

// One process more than processors, because processes often wait for a disk or a node.
const results = run({ files: writeBatches(files), concurrency: availableParallelism() + 1 })
results.on('test:fail', () => {
  process.exitCode = 1
})
for (const event of ['test:pass', 'test:fail'] as const) {
  results.on(event, ({ file, nesting, details }) => {
    if (nesting === 0 && file !== undefined) addTime(file, details.duration_ms)
  })
}
for await (const line of results.compose(spec)) process.stdout.write(line)
process.stdout.write(`${shares()}\n`)

function testFiles(path: string): string[] {
  if (path.endsWith('.ts')) return [resolve(path)]
  return globSync(`${path}/**/*.test.ts`).map((file) => resolve(file))
}

/** Writes a file for each process. It imports the test files, which run one after another. */
function writeBatches(all: string[]): string[] {
  rmSync(BATCHES, { recursive: true, force: true })
  mkdirSync(BATCHES, { recursive: true })
  const isSlow = (file: string): boolean => SLOW_FOLDERS.includes(folderOf(file))
  const slow = all.filter(isSlow).map((file) => [file])
  const others = Object.values(
    Object.groupBy(
      all.filter((file) => !isSlow(file)),
      folderOf,
    ),
  )
  const batches = [...slow, ...others.flatMap((folder = []) => chunks(folder.toSorted()))]
  return batches.map((batch, i) => {
    const file = join(BATCHES, `${String(i).padStart(3, '0')}.test.ts`)
    writeFileSync(file, batch.map((test) => `import '${pathToFileURL(test)}'\n`).join(''))
    return file
  })
}

function chunks(folder: string[]): string[][] {
  const count = Math.ceil(folder.length / FILES_PER_PROCESS)
  return Array.from({ length: count }, (_, i) => folder.filter((_, at) => at % count === i))
}

function folderOf(file: string): string {
  return relative(ROOT, file).split('/').slice(0, 2).join('/')
}

function addTime(file: string, ms: number): void {
  const folder = folderOf(file)
  seconds.set(folder, (seconds.get(folder) ?? 0) + ms / 1000)
}

/** A line for each folder, the slowest first. Processes run in parallel, so the sum exceeds the real time. */
function shares(): string {
  const lines = [...seconds]
    .toSorted(([, a], [, b]) => b - a)
    .map(([folder, s]) => `${s.toFixed(0).padStart(6)} s  ${folder}`)
  const all = ((performance.now() - began) / 1000).toFixed(0)
  return [`\nTime in the tests of each folder, of ${all} s in all:`, ...lines].join('\n')
}
