/**
 * `npm run package`: makes the tarball that people install and that is published, `build/mayfly-<version>.tgz`.
 * It holds what was built and the documents, and pins every package that it brings: those of the SDK and of the
 * clients' commands. What only the service needs is an optional peer, for npm installs optional dependencies
 * globally even if it is told not to. `mayfly serve` names the command that adds the peers. Beside it comes its bill
 * of materials, `build/mayfly-<version>.cdx.json`. The same source gives the same bytes of both, wherever and whenever
 * they are made (docs/run/security.md#where-it-came-from). `package-client.ts` makes the tarball of the SDK alone.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeClientPackage } from './package-client.ts'
import { type Sbom, writeSbom } from './sbom.ts'

/** What the SDK, `mayfly/gate` and the commands of clients load. A test installs these alone. */
const OF_CLIENTS = [
  '@bomb.sh/tab',
  '@getalby/sdk',
  '@modelcontextprotocol/server',
  'commander',
  'ipaddr.js',
  'qr',
  'typebox',
  'undici',
]

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const COPIED = ['bin/*.mjs', 'docs/**/*.md', 'openapi.json', 'CHANGELOG.md', 'LICENSE', 'README.md']

type Manifest = {
  name: string
  version: string
  dependencies: Record<string, string>
  exports: Record<string, string | { types: string }>
  repository?: unknown
} & Record<string, unknown>

/** Makes the tarball and its bill of materials in this folder, and returns the path of the tarball. */
export function makePackage(folder: string): string {
  const staged = join(folder, 'package')
  rmSync(staged, { recursive: true, force: true })
  mkdirSync(staged, { recursive: true })
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest
  compileTo(join(staged, 'dist'))
  for (const file of globSync(COPIED, { cwd: ROOT })) {
    mkdirSync(dirname(join(staged, file)), { recursive: true })
    copyFileSync(join(ROOT, file), join(staged, file))
  }
  dropUnusedTypes(staged, manifest)
  writeJson(join(staged, 'package.json'), published(manifest))
  pin(staged)
  const pinned = flatten(staged)
  setModes(staged)
  const packed = npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder], staged)
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }]
  const tarball = join(folder, filename)
  writeSbom(tarball, { sbom: materials(folder, manifest), pinned })
  return tarball
}

function writeJson(file: string, content: object): void {
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`)
}

type Pinned = Record<string, { version: string; dependencies?: Record<string, string> }>

/**
 * Makes every package that is brought a dependency of its own, in its exact version: npm reads the shrinkwrap only of
 * what comes from a registry, and takes whatever is newest below a tarball. Returns the packages by their places.
 * @throws if one is needed in two versions, which this cannot say.
 */
function flatten(staged: string): Pinned {
  const [file, manifestFile] = ['npm-shrinkwrap.json', 'package.json'].map((name) =>
    join(staged, name),
  ) as [string, string]
  const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: Pinned }
  const flat = new Map<string, Pinned[string]>()
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path === '') continue
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    if ((flat.get(name) ?? entry).version !== entry.version) {
      throw new Error(`clients need ${name} in two versions, and only one can be pinned`)
    }
    flat.set(name, entry)
  }
  const sorted = [...flat].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const dependencies = Object.fromEntries(sorted.map(([name, { version }]) => [name, version]))
  const packages = Object.fromEntries([
    ['', { ...lock.packages[''], dependencies }],
    ...sorted.map(([name, entry]) => [`node_modules/${name}`, entry]),
  ])
  writeJson(file, { ...lock, packages })
  const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as object
  writeJson(manifestFile, { ...manifest, dependencies })
  return packages as Pinned
}

/** What the package and the service need. In a folder without tools, as npm leaves out what tools need as well. */
function materials(folder: string, manifest: Manifest): Sbom {
  const { name, version, description, license, dependencies } = manifest
  const bare = join(folder, 'materials')
  rmSync(bare, { recursive: true, force: true })
  mkdirSync(bare)
  const text = JSON.stringify({ name, version, description, license, dependencies })
  writeFileSync(join(bare, 'package.json'), text)
  pin(bare)
  const sbom = npm(['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], bare)
  rmSync(bare, { recursive: true })
  return JSON.parse(sbom) as Sbom
}

/** npm sets times, owners and the mode of the command. The other modes are those of whoever builds. */
function setModes(staged: string): void {
  for (const entry of readdirSync(staged, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) chmodSync(join(entry.parentPath, entry.name), 0o644)
  }
}

/** Always from nothing: what is gone from the source must not be in the package. */
export function compileTo(outDir: string): void {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const options = ['--outDir', outDir, '--incremental', 'false', '--tsBuildInfoFile', 'null']
  node([compiler, '-p', 'tsconfig.build.json', ...options])
  node([join(ROOT, 'scripts/copy-assets.ts'), outDir])
}

/** Types serve the programs of others, who import only what `exports` names. */
function dropUnusedTypes(staged: string, { exports }: Manifest): void {
  const entries = Object.values(exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [join(staged, entry.types)],
  )
  const used = new Set<string>()
  for (let file = entries.pop(); file !== undefined; file = entries.pop()) {
    if (used.has(file)) continue
    used.add(file)
    const imports = readFileSync(file, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)['"]/g)
    for (const [, name = ''] of imports) {
      entries.push(join(dirname(file), name.replace(/\.[jt]s$/, '.d.ts')))
    }
  }
  for (const file of globSync('dist/**/*.d.ts', { cwd: staged })) {
    if (!used.has(join(staged, file))) rmSync(join(staged, file))
  }
}

/** The manifest as others see it: nothing of the work on the source. */
function published(manifest: Manifest): object {
  const { private: _private, devDependencies, scripts, allowScripts, ...rest } = manifest
  const all = Object.entries(manifest.dependencies)
  const isOfClients = ([name]: [string, string]): boolean => OF_CLIENTS.includes(name)
  const ofService = all.filter((one) => !isOfClients(one))
  return {
    ...rest,
    dependencies: Object.fromEntries(all.filter(isOfClients)),
    peerDependencies: Object.fromEntries(ofService),
    peerDependenciesMeta: Object.fromEntries(ofService.map(([name]) => [name, { optional: true }])),
    // npm refuses a provenance without the repository that it vouches for.
    publishConfig: { access: 'public', ...(rest.repository ? { provenance: true } : {}) },
  }
}

/** Every package below this one gets the version with which the tests ran. */
function pin(staged: string): void {
  const lock = join(staged, 'package-lock.json')
  copyFileSync(join(ROOT, 'package-lock.json'), lock)
  // Without the address of the registry that this machine uses; each package has its hash.
  const bare = '--omit-lockfile-registry-resolved'
  npm(['install', '--package-lock-only', '--offline', '--ignore-scripts', bare], staged)
  renameSync(lock, join(staged, 'npm-shrinkwrap.json'))
}

function node(args: string[]): string {
  return execFileSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })
}

function npm(args: string[], cwd: string): string {
  // On stderr npm talks about its own news.
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

if (import.meta.main) {
  const folder = resolve(process.argv[2] ?? join(ROOT, 'build'))
  const tarball = makePackage(folder)
  const { repository } = JSON.parse(
    readFileSync(join(folder, 'package/package.json'), 'utf8'),
  ) as Manifest
  const client = makeClientPackage(folder, join(folder, 'package/dist'))
  process.stdout.write(`${tarball}\n${client}\n`)
  process.stderr.write(
    `${Math.round(statSync(tarball).size / 1000)} kB. To install it: npm install -g ${tarball}\n${
      repository
        ? `To publish it, from CI: npm publish ${tarball}\n`
        : `To publish it: npm publish ${tarball}\nWithout a provenance, as long as package.json has no "repository": the address of the public repository whose CI publishes, {"type": "git", "url": "git+https://…"}.\n`
    }`,
  )
}
