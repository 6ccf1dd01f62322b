#!/usr/bin/env node
// Plain JavaScript, so that an old Node can read it and say what is wrong.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { useCompileCache } from './compile-cache.mjs'
import { jobIn, runJob } from './job.mjs'

const [major] = process.versions.node.split('.').map(Number)
const isSource = existsSync(new URL('../src/main.ts', import.meta.url))
const part = (name) =>
  new URL(isSource ? `../src/${name}.ts` : `../dist/${name}.js`, import.meta.url)

// The job of `pulse run` is somebody's backup: it runs first, whatever is wrong with us.
const job = jobIn(process.argv.slice(2))
if (job !== null) {
  const running = runJob(job.command)
  const telling = tellOf(job)
  const code = await running
  const tellEnd = await telling
  await tellEnd(code)
  // Nothing that is still under way may keep the job from being over.
  process.exit(code)
}
if (major < 24) {
  process.stderr.write(tooOld())
  process.exit(1)
}
if (isSource) useCompileCache()
await import(part('main'))

/** Tells the job's monitor that it runs. Returns what tells of its end. Never rejects. */
async function tellOf({ name, isPingOnly }) {
  const failed = (why) => async (code) => {
    if (code === 0) process.stderr.write(`The command succeeded, and ${why}\n`)
  }
  if (major < 24) return failed(`there is no ping. ${tooOld().trimEnd()}`)
  try {
    if (isSource) useCompileCache()
    const { tellOfRun } = await import(part('cli/pulse-run'))
    return tellOfRun(name, { isPingOnly })
  } catch (error) {
    return failed(`the ping failed: ${error}`)
  }
}

function tooOld() {
  // Where it is installed, this very file: a name alone could bring somebody else's package.
  const command = isSource
    ? 'npm ci && npm run --silent mayfly -- …'
    : `npx --yes node@24 ${fileURLToPath(import.meta.url)} …`
  return `Mayfly needs Node 24 or newer and this is ${process.version}. Run: ${command}\n`
}
