/** The tarball of the SDK alone, installed where there is nothing else. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { compileTo } from '../../scripts/package.ts'
import { makeClientPackage } from '../../scripts/package-client.ts'
import { assertCompiles, OF_A_BROWSER } from '../support/readers-project.ts'
import { startServer } from '../support/server.ts'

const run = promisify(execFile)
const BUY = fileURLToPath(new URL('../../clients/runtimes/buy.mjs', import.meta.url))

suite('the SDK alone', () => {
  let folder = ''
  let root = ''
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-client-'))
    const dist = join(folder, 'dist')
    compileTo(dist)
    const tarball = makeClientPackage(folder, dist)
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    // As a reader does it, and without a network: there is nothing to fetch.
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: folder })
    root = join(folder, 'node_modules/mayfly-client')
  })
  after(() => rm(folder, { recursive: true, force: true }))

  test('installed alone it brings no other package, and names none', async () => {
    const modules = await readdir(join(folder, 'node_modules'))
    assert.deepEqual(
      modules.filter((name) => !name.startsWith('.')),
      ['mayfly-client'],
    )
    const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as object
    assert.deepEqual(
      Object.keys(manifest).filter((name) => /dependencies/i.test(name)),
      [],
    )
    const files = await readdir(join(root, 'dist'), { recursive: true })
    for (const file of files.filter((name) => /\.[jt]s$/.test(name))) {
      const text = await readFile(join(root, 'dist', file), 'utf8')
      const named = [...text.matchAll(/^(?:import|export)\b[^'";/]*from ['"]([^.'"][^'"]*)['"]/gm)]
      assert.deepEqual(named, [], file)
    }
  })

  test('it buys and uses every product in Node, by its modules and by its one file', async (t) => {
    const { url } = await startServer(t)
    for (const module of ['mayfly-client', 'mayfly-client/mayfly-client.min.js']) {
      const program = join(folder, 'buy.mjs')
      await writeFile(program, await readFile(BUY))
      const { stdout } = await run(process.execPath, [program, module, url])
      assert.equal(stdout, 'bought\n')
    }
  })

  test('its types are those of the service, for compilers that look at every declaration', async () => {
    const program = OF_A_BROWSER.replaceAll("'mayfly/client'", "'mayfly-client'")
    const lib = ['es2024', 'esnext.disposable', 'dom', 'dom.iterable']
    for (const module of ['nodenext', 'esnext'] as const) {
      await assertCompiles(folder, program, { lib, types: [], module })
    }
  })
})
