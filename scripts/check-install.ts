/** `node scripts/check-install.ts <prefix>`: whether a global install there is what README says, in packages and MB. */
import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Documents grow a little with each change. */
const TOLERANCE = 0.1

/** What is not as README says, or null. */
export function wrongInstall(prefix: string, readme: string): string | null {
  const [, count, megabytes] = /with (\d+) packages in (\d+) MB/.exec(readme) ?? []
  const modules = join(prefix, 'lib/node_modules')
  const packages = globSync('**/node_modules/{*,@*/*}/package.json', { cwd: prefix })
  const bytes = globSync('**', { cwd: modules, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
  const found = bytes / 1_000_000
  const isAsLarge = Math.abs(found - Number(megabytes)) <= TOLERANCE * found
  return packages.length === Number(count) && isAsLarge
    ? null
    : `README says ${count} packages in ${megabytes} MB, and the install has ${packages.length} in ${found.toFixed(0)} MB`
}

if (import.meta.main) {
  const [prefix = ''] = process.argv.slice(2)
  const root = fileURLToPath(new URL('..', import.meta.url))
  const wrong = wrongInstall(prefix, readFileSync(join(root, 'README.md'), 'utf8'))
  if (wrong !== null) process.stderr.write(`${wrong}.\n`)
  process.exitCode = wrong === null ? 0 : 1
}
