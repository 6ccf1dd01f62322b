/**
 * `npm run mutate -- [room | source file …]`: breaks the sources on purpose, one small change at a time, and names
 * each change that no test notices. docs/internals/testing.md tells how to read it.
 */
import { spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { importersOf } from './importers.ts'
import { judge } from './report.ts'
import { ROOMS } from './rooms.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const HERE = join(ROOT, 'mutation')
const TOOLS = join(ROOT, '.cache/mutation')
/** A mutant that computes forever is stopped after this and six times of what its tests take without it. */
const TIMEOUT_MS = 60_000
const TIMEOUT_FACTOR = 3
/** Linux keeps this folder in memory, where a store of a test has no disk to wait for. */
const MEMORY = '/dev/shm'
/** What Stryker mutates besides SQL. */
const ORDINARY = [
  ...['ArithmeticOperator', 'ArrayDeclaration', 'ArrowFunction', 'AssignmentOperator'],
  ...['CallExpression'],
  ...['BlockStatement', 'BooleanLiteral', 'ConditionalExpression', 'EmptyExpression'],
  ...['EqualityOperator', 'LogicalOperator', 'MethodExpression', 'ObjectLiteral'],
  ...['OptionalChaining', 'Regex', 'StringLiteral', 'UnaryOperator', 'UpdateOperator'],
]

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    concurrency: { type: 'string', default: '2' },
    fresh: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    tests: { type: 'string', multiple: true },
    sql: { type: 'boolean', default: false },
  },
})
const isRoom = positionals.length === 0 || positionals.every((name) => Object.hasOwn(ROOMS, name))
process.chdir(ROOT)
install()
/** What the tests write. Those that a mutant stopped remove nothing themselves. */
const scratch = mkdtempSync(join(isWritable(MEMORY) ? MEMORY : tmpdir(), 'mayfly-mutation-'))
// Like /tmp: a PostgreSQL of a test runs as another user.
chmodSync(scratch, 0o1777)
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))
if (isRoom) {
  for (const name of positionals.length > 0 ? positionals : Object.keys(ROOMS)) mutate(name)
} else {
  const rooms = Object.groupBy(positionals, roomOf)
  for (const [name, files = []] of Object.entries(rooms)) mutate(name, files)
}

function mutate(name: string, files?: string[]): void {
  const room = ROOMS[name]
  if (room === undefined)
    throw new Error(`There is no room ${name}, only ${Object.keys(ROOMS).join(', ')}`)
  const patterns = values.tests ?? room.tests
  const testFiles = patterns.flatMap((pattern) => globSync(pattern)).toSorted()
  const report = join(TOOLS, files === undefined ? `${name}.json` : `${name}-files.json`)
  const config = join(TOOLS, `${name}.config.json`)
  writeFileSync(
    config,
    JSON.stringify({
      mutate: files ?? room.mutate,
      mayfly: { tests: files === undefined ? testFiles : importersOf(files, testFiles) },
      testRunner: 'mayfly',
      plugins: [join(HERE, 'runner.ts'), join(HERE, 'sql-mutator.ts')],
      mutator: { excludedMutations: values.sql ? ORDINARY : [] },
      coverageAnalysis: 'perTest',
      concurrency: Number(values.concurrency),
      timeoutMS: TIMEOUT_MS,
      timeoutFactor: TIMEOUT_FACTOR,
      dryRunTimeoutMinutes: 15,
      testRunnerNodeArgs: ['--disable-warning=ExperimentalWarning'],
      tempDirName: '.cache/mutation/sandboxes',
      ignorePatterns: [
        '.cache',
        'dist',
        'build',
        'data',
        'clients',
        'bench',
        'mutation',
        'docs/images',
      ],
      disableTypeChecks: false,
      // Stryker reads the other one with TypeScript's interface, which version 7 does not have.
      tsconfigFile: 'none.json',
      allowConsoleColors: false,
      warnings: { slow: false, unknownOptions: false },
      reporters: [
        'json',
        'html',
        ...(process.stdout.isTTY ? ['progress'] : ['progress-append-only']),
      ],
      jsonReporter: { fileName: report },
      htmlReporter: { fileName: report.replace(/json$/, 'html') },
      // What other tests found is no longer known to be found by these.
      incremental: values.tests === undefined,
      incrementalFile: join(TOOLS, `${name}${values.sql ? '-sql' : ''}.incremental.json`),
      force: values.fresh,
      ignoreStatic: values.quick,
      thresholds: { break: null },
    }),
  )
  rmSync(report, { force: true })
  const { status } = spawnSync(join(TOOLS, 'node_modules/.bin/stryker'), ['run', config], {
    stdio: 'inherit',
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: join(TOOLS, 'compiled'),
      TMPDIR: scratch,
      MAYFLY_MUTATION_INSTRUMENTER: join(TOOLS, 'node_modules/@stryker-mutator/instrumenter'),
    },
  })
  if (status !== 0 || !existsSync(report)) process.exit(status || 1)
  const { lines, isGood } = judge(name, report, files)
  process.stdout.write(`${lines.join('\n')}\n`)
  if (!isGood) process.exitCode = 1
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function roomOf(file: string): string {
  const found = Object.entries(ROOMS).find(([, { mutate }]) =>
    mutate.some((pattern) => globSync(pattern).includes(file)),
  )
  if (found === undefined)
    throw new Error(`No room has ${file}: mutation/rooms.ts says what is mutated`)
  return found[0]
}

function install(): void {
  mkdirSync(TOOLS, { recursive: true })
  const lock = join(TOOLS, 'package-lock.json')
  const wanted = join(HERE, 'package-lock.json')
  const isInstalled =
    existsSync(join(TOOLS, 'node_modules')) &&
    existsSync(lock) &&
    readFileSync(lock, 'utf8') === readFileSync(wanted, 'utf8')
  if (isInstalled) return
  copyFileSync(join(HERE, 'package.json'), join(TOOLS, 'package.json'))
  copyFileSync(wanted, lock)
  const { status } = spawnSync(
    'npm',
    ['ci', '--prefix', TOOLS, '--ignore-scripts', '--no-fund', '--no-audit', '--loglevel', 'error'],
    { stdio: 'inherit' },
  )
  if (status !== 0) process.exit(status ?? 1)
}
