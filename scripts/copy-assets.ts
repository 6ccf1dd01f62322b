/** `node scripts/copy-assets.ts [dist]`: the parts of the build that the compiler leaves out. */
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { BUNDLES, bundle } from '../src/http/pages/assets.ts'
import { pageScripts } from '../src/http/pages/pages.ts'

const PARTS = [
  { folder: 'db/migrations/', files: /\.sql$/ },
  { folder: 'web/pages/', files: /\.html$/ },
  { folder: 'web/', files: /\.(?:html|svg)$/ },
]

const dist = resolve(process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url)))

for (const { folder, files } of PARTS) {
  const from = new URL(`../src/${folder}`, import.meta.url)
  const to = new URL(folder, pathToFileURL(`${dist}/`))
  mkdirSync(to, { recursive: true })
  // Emptied first: a migration or page that is gone from the source must not be in the build.
  for (const name of readdirSync(to)) if (files.test(name)) rmSync(new URL(name, to))
  for (const name of readdirSync(from)) {
    if (files.test(name)) copyFileSync(new URL(name, from), new URL(name, to))
  }
}

const bundles = new URL(BUNDLES, pathToFileURL(`${dist}/`))
rmSync(bundles, { recursive: true, force: true })
for (const [path, text] of await bundle(new URL('../src/', import.meta.url), pageScripts())) {
  const file = fileURLToPath(new URL(path, bundles))
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
