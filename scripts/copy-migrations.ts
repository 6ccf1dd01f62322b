/** `node scripts/copy-migrations.ts`: the part of the build that the compiler leaves out. */
import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs'

const from = new URL('../src/db/migrations/', import.meta.url)
const to = new URL('../dist/db/migrations/', import.meta.url)

// Emptied first: a migration that is gone from the source must not run from the build.
rmSync(to, { recursive: true, force: true })
mkdirSync(to, { recursive: true })
for (const name of readdirSync(from)) {
  if (name.endsWith('.sql')) copyFileSync(new URL(name, from), new URL(name, to))
}
