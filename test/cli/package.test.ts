import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { until } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)

test('the packed program sells, listens, forwards and reads back in an empty folder', async (t) => {
  const bin = await installed(t)
  const store = join(await temporaryFolder(t), 'mayfly.db')
  const nowhere = await commandLine(t, 'http://127.0.0.1:9', { bin })
  const service = nowhere.start(['serve'], {
    environment: { MAYFLY_PORT: '0', MAYFLY_DATABASE_URL: `sqlite:${store}` },
  })
  const url = await until('the service listens', () => {
    const line = service
      .out()
      .split('\n')
      .find((some) => some.includes('"listening"'))
    return line === undefined ? null : (JSON.parse(line) as { url: string }).url
  })

  const cli = await commandLine(t, url, { bin })
  const { ingestUrl } = await cli.json(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
  const receiver = createServer((request, response) => {
    response.statusCode = request.url === '/hook/there' ? 202 : 500
    response.end()
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  t.after(() => receiver.close())
  await fetch(`${ingestUrl}/there`, { method: 'POST', body: 'hello' })
  const told = await cli.json([
    ...['catch', 'listen', 'hooks', '--since', 'start', '--once', '--forward'],
    `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`,
  ])
  assert.equal(told.status, 202)

  const { code } = await cli.json(['whisper', 'send', '--name', 'w'], {
    ...WITH_WALLET,
    input: 'packed',
  })
  assert.equal((await cli.run(['whisper', 'read', '-'], { input: String(code) })).out, 'packed')

  const old = await nowhere.run(['list'], { environment: { NODE_OPTIONS: OLDER } })
  assert.match(old.err, new RegExp(`Run: npx --yes node@24 ${bin} …\n$`))
})

test('the program says in one sentence what to run on an older Node', async (t) => {
  const folder = await temporaryFolder(t)
  const { err, code } = await (
    await commandLine(t, 'http://127.0.0.1:9', { bin: join(ROOT, 'bin/mayfly.mjs') })
  ).run(['list'], {
    environment: {
      NODE_OPTIONS: OLDER,
      HOME: folder,
    },
  })
  assert.equal(code, 1)
  assert.match(err, /^Mayfly needs Node 24 or newer and this is v[\d.]+\. Run: npm .*\n$/)
})

/** What an older Node tells of itself, to the same file. */
const OLDER = `--import=data:text/javascript,${encodeURIComponent(
  `Object.defineProperty(process.versions, 'node', { value: '20.11.1' })`,
)}`

/** The tarball that would be published, in a folder with what it depends on and nothing else. */
async function installed(t: After): Promise<string> {
  const folder = await temporaryFolder(t)
  const options = { cwd: ROOT }
  await run(
    process.execPath,
    ['node_modules/typescript/bin/tsc', '-b', 'tsconfig.build.json'],
    options,
  )
  await run(process.execPath, ['scripts/copy-assets.ts'], options)
  const { stdout } = await run(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', folder],
    options,
  )
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  const modules = join(folder, 'node_modules')
  await mkdir(modules)
  await run('tar', ['xzf', join(folder, filename), '-C', modules])
  await run('mv', [join(modules, 'package'), join(modules, 'mayfly')])
  assert.equal(existsSync(join(modules, 'mayfly/src')), false)
  const manifest = JSON.parse(await readFile(join(modules, 'mayfly/package.json'), 'utf8')) as {
    dependencies: Record<string, string>
    bin: { mayfly: string }
  }
  for (const name of Object.keys(manifest.dependencies)) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(ROOT, 'node_modules', name), join(modules, name))
  }
  assert.ok((await readdir(join(modules, 'mayfly/dist/db/migrations'))).length > 0)
  return join(modules, 'mayfly', manifest.bin.mayfly)
}
