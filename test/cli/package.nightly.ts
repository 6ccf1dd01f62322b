import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { makePackage } from '../../scripts/package.ts'
import type { Sbom } from '../../scripts/sbom.ts'
import { TOOL_NAMES } from '../../src/tools/tools.ts'
import { ENVIRONMENT, OLDER } from '../support/bin.ts'
import { commandLine, WITH_WALLET } from '../support/command-line.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { connectHost, HOSTS } from '../support/mcp-host.ts'
import { assertCompiles, OF_A_BROWSER, OF_A_SERVER } from '../support/readers-project.ts'
import { startServer } from '../support/server.ts'
import { serve } from '../support/serving.ts'
import { until } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)

/** Made once, by the script that makes the one to publish. */
const made = { folder: '', tarball: '' }

suite('the tarball', () => {
  before(async () => {
    made.folder = await mkdtemp(join(tmpdir(), 'mayfly-package-'))
    made.tarball = makePackage(made.folder)
  })
  after(() => rm(made.folder, { recursive: true, force: true }))

  test('the packed program sells, listens, forwards and reads back in an empty folder', async (t) => {
    const { bin } = await installed(t, { withService: true })
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
    const receiver = await serve(t, (request, response) => {
      response.statusCode = request.url === '/hook/there' ? 202 : 500
      response.end()
    })
    await fetch(`${ingestUrl}/there`, { method: 'POST', body: 'hello' })
    const told = await cli.json([
      ...['catch', 'listen', 'hooks', '--since', 'start', '--once', '--forward'],
      `${receiver}/hook`,
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

  test('an install without the service has every command of clients, and says what the service lacks', async (t) => {
    const { bin, root } = await installed(t, { withService: false })
    const { url } = await startServer(t)
    const cli = await commandLine(t, url, { bin })
    for (const args of [
      ['--help'],
      ['buy', 'catch', '--name', 'hooks'],
      ['buy', 'pulse', '--name', 'beat'],
      ['status', 'hooks'],
      ['pulse', 'ping', 'beat'],
      ['whisper', 'send', '--name', 'w'],
      ['catalog'],
      ['completion', 'bash'],
    ]) {
      const { code, err } = await cli.run(args, { ...WITH_WALLET, input: 'x' })
      assert.equal(code, 0, `${args.join(' ')}: ${err}`)
    }
    const { peerDependencies } = await manifestIn(root)
    const added = Object.entries(peerDependencies).map((peer) => peer.join('@'))
    for (const command of ['serve', 'doctor', 'order show x']) {
      const { code, err } = await cli.run(command.split(' '), {
        environment: { MAYFLY_DATABASE_URL: `sqlite:${root}/x.db` },
      })
      assert.equal(code, 1, command)
      assert.ok(err.endsWith(`To add them: npm install -g ${added.join(' ')}\n`), err)
    }
  })

  test('an install without the service gives a host of MCP its tools, in an empty home folder', async (t) => {
    const { bin } = await installed(t, { withService: false })
    const home = await temporaryFolder(t)
    const environment = { HOME: home }
    for (const kind of HOSTS) {
      const host = await connectHost(t, { kind, bin, home, environment, url: 'http://127.0.0.1:9' })
      const tools = await host.tools()
      assert.deepEqual(
        tools.map(({ name }) => name),
        TOOL_NAMES,
      )
      assert.match((await host.call('catalog')).text, /127\.0\.0\.1:9 does not answer/)
    }
    assert.deepEqual(await readdir(home), [])
  })

  test('the tarball has what others need, and nothing of the work on the source', async (t) => {
    const { root } = await installed(t, { withService: false })
    const manifest = await manifestIn(root)
    const { devDependencies, scripts, private: isPrivate, publishConfig } = manifest
    assert.deepEqual([devDependencies, scripts, isPrivate], [undefined, undefined, undefined])
    assert.deepEqual(publishConfig, { access: 'public' })
    const files = await readdir(root, { recursive: true })
    assert.ok(files.length < 900, `${files.length} files`)
    assert.ok((await stat(made.tarball)).size < 1_250_000)
    for (const file of ['LICENSE', 'README.md', 'docs/cli.md', 'npm-shrinkwrap.json']) {
      assert.ok(files.includes(file), file)
    }
    assert.ok(files.some((file) => /^dist\/db\/migrations\/.*\.sql$/.test(file)))
    assert.deepEqual(
      files.filter((file) => /^(?:src|test|node_modules)|tsbuildinfo|(?<!\.d)\.ts$/.test(file)),
      [],
    )
  })

  test('an install brings the versions that were tested, as many as README says, and npm has no choice of another', async (t) => {
    const { root } = await installed(t, { withService: false })
    const pinned = await pinnedIn(join(root, 'npm-shrinkwrap.json'))
    const tested = new Set((await pinnedIn(join(ROOT, 'package-lock.json'))).map(nameOf))
    // npm reads no shrinkwrap of a tarball.
    const { dependencies } = await manifestIn(root)
    assert.deepEqual(
      dependencies,
      Object.fromEntries(pinned.map(({ name, version }) => [name, version])),
    )
    for (const one of pinned) {
      assert.ok(tested.has(nameOf(one)), nameOf(one))
      assert.equal(one.dev, undefined, one.name)
      for (const needed of Object.keys(one.dependencies ?? {})) {
        assert.match(dependencies[needed] ?? '', /^\d+\.\d+\.\d+$/, `${needed} for ${one.name}`)
      }
    }
    // npm counts the package itself.
    const told = new RegExp(`with ${pinned.length + 1} packages in \\d+ MB`)
    assert.match(await readFile(join(ROOT, 'README.md'), 'utf8'), told)
  })

  for (const module of ['nodenext', 'esnext'] as const) {
    test(`a strict browser project (${module}) checks every declaration of mayfly/client without Node's types`, async (t) => {
      const { folder } = await installed(t, { withService: false })
      const lib = ['es2023', 'dom', 'dom.iterable']
      await assertCompiles(folder, OF_A_BROWSER, { lib, types: [], module })
    })
  }

  test('the same source makes the same tarball and bill of materials in another folder, by another user', async (t) => {
    const folder = await temporaryFolder(t)
    const [copy, out] = [join(folder, 'else/where'), join(folder, 'out')]
    for (const name of OF_THE_BUILD) {
      await cp(join(ROOT, name), join(copy, name), { recursive: true })
    }
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
    const command = 'umask 077; exec "$0" scripts/package.ts "$1"'
    await run('sh', ['-c', command, process.execPath, out], {
      cwd: copy,
      env: { ...ENVIRONMENT, HOME: folder, TZ: 'Asia/Tokyo', LC_ALL: 'C' },
    })
    for (const file of ['mayfly-0.1.0.tgz', 'mayfly-0.1.0.cdx.json']) {
      assert.equal(await digest(join(out, file)), await digest(join(made.folder, file)), file)
    }
  })

  test('the bill of materials names the tarball by its hash, and what it needs with its versions, and no tool', async (t) => {
    const { root } = await installed(t, { withService: false })
    const sbom = JSON.parse(
      await readFile(made.tarball.replace('.tgz', '.cdx.json'), 'utf8'),
    ) as Sbom
    assert.deepEqual(sbom.metadata.component.hashes, [
      { alg: 'SHA-512', content: await digest(made.tarball) },
    ])
    assert.equal(sbom.metadata.component.name, 'mayfly')
    const pinned = (await pinnedIn(join(root, 'npm-shrinkwrap.json'))).map(nameOf)
    const refs = (scope: string): string[] =>
      sbom.components.filter((each) => each.scope === scope).map((each) => each['bom-ref'])
    assert.deepEqual(refs('required').toSorted(), pinned.toSorted())
    const { peerDependencies } = await manifestIn(root)
    for (const [name, version] of Object.entries(peerDependencies)) {
      assert.ok(refs('optional').includes(`${name}@${version}`), name)
    }
    assert.ok(!sbom.components.some(({ name }) => name === 'typescript'), 'what only builds it')
    for (const { name, hashes, licenses } of sbom.components) {
      assert.ok(hashes?.[0]?.alg === 'SHA-512' && licenses?.length, name)
    }
  })

  test("a strict Node project checks every declaration of mayfly/gate with Node's types alone", async (t) => {
    const { folder } = await installed(t, { withService: false })
    const types = 'node_modules/@types'
    await mkdir(join(folder, types))
    await symlink(join(ROOT, types, 'node'), join(folder, types, 'node'))
    const options = { lib: ['es2023'], types: ['node'], module: 'nodenext' as const }
    await assertCompiles(folder, OF_A_SERVER, options)
  })

  test('paths given to npm run mayfly are meant from where npm was called', async (t) => {
    const { url } = await startServer(t)
    const folder = await temporaryFolder(t)
    await writeFile(join(folder, 'secret.txt'), 'from here')
    const npm = (...args: string[]): Promise<{ stdout: string }> =>
      run('npm', ['--prefix', ROOT, 'run', '--silent', 'mayfly', '--', ...args], {
        cwd: folder,
        env: {
          ...ENVIRONMENT,
          MAYFLY_URL: url,
          XDG_DATA_HOME: folder,
          MAYFLY_WALLET_URL: 'simulator:',
        },
      })
    const { stdout } = await npm('whisper', 'send', 'secret.txt', '--json')
    const { code } = JSON.parse(stdout) as { code: string }
    await npm('whisper', 'read', code, '--out', 'read.txt', '--yes')
    assert.equal(await readFile(join(folder, 'read.txt'), 'utf8'), 'from here')
    const { stdout: checks } = await npm('doctor', '--json')
    assert.ok(checks.includes(join(ROOT, 'data/mayfly.db')), 'the store of the clone')
    const ran = await npm('pulse', 'run', 'nobody', '--', 'pwd').catch((error) => error)
    assert.equal(ran.stdout, `${folder}\n`)
  })
})

/** What a build reads, besides the packages. */
const OF_THE_BUILD = [
  ...['src', 'bin', 'docs', 'scripts', 'package.json', 'package-lock.json', '.npmrc'],
  ...[
    'tsconfig.json',
    'tsconfig.build.json',
    'openapi.json',
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
  ],
]

const digest = async (file: string): Promise<string> =>
  createHash('sha512')
    .update(await readFile(file))
    .digest('hex')

/** The tarball that would be published, in a folder with what it depends on and nothing else. */
async function installed(
  t: After,
  { withService }: { withService: boolean },
): Promise<{ bin: string; folder: string; root: string }> {
  const folder = await temporaryFolder(t)
  const modules = join(folder, 'node_modules')
  await mkdir(modules)
  await run('tar', ['xzf', made.tarball, '-C', modules])
  const root = join(modules, 'mayfly')
  await rename(join(modules, 'package'), root)
  const { dependencies, peerDependencies, bin } = await manifestIn(root)
  const brought = withService ? { ...dependencies, ...peerDependencies } : dependencies
  for (const name of Object.keys(brought)) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(ROOT, 'node_modules', name), join(modules, name))
  }
  return { bin: join(root, bin.mayfly), folder, root }
}

type Pinned = {
  name: string
  version: string
  dev?: true
  dependencies?: Record<string, string>
}

/** The packages of a lock file. */
async function pinnedIn(file: string): Promise<Pinned[]> {
  const { packages } = JSON.parse(await readFile(file, 'utf8')) as {
    packages: Record<string, Pinned>
  }
  return Object.entries(packages)
    .filter(([path]) => path !== '')
    .map(([path, pinned]) => ({ ...pinned, name: path.split('node_modules/').at(-1) ?? '' }))
}

const nameOf = ({ name, version }: Pinned): string => `${name}@${version}`

type Manifest = {
  dependencies: Record<string, string>
  peerDependencies: Record<string, string>
  bin: { mayfly: string }
} & Record<string, unknown>

const manifestIn = async (folder: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest
