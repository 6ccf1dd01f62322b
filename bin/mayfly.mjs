#!/usr/bin/env node
// Plain JavaScript, so that an old Node can read it and say what is wrong.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const [major] = process.versions.node.split('.').map(Number)
const source = new URL('../src/main.ts', import.meta.url)

if (major < 24) {
  // Where it is installed, this very file: a name alone could bring somebody else's package.
  const command = existsSync(source)
    ? 'npm ci && npm run --silent mayfly -- …'
    : `npx --yes node@24 ${fileURLToPath(import.meta.url)} …`
  process.stderr.write(
    `Mayfly needs Node 24 or newer and this is ${process.version}. Run: ${command}\n`,
  )
  process.exit(1)
}
await import(existsSync(source) ? source : new URL('../dist/main.js', import.meta.url))
