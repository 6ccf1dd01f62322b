#!/usr/bin/env node
// Plain JavaScript, so that an old Node can read it and say what is wrong.
import { existsSync } from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { useCompileCache } from './compile-cache.mjs'
import { jobIn, runJob } from './job.mjs'
import { isTooOld, tooOld } from './node-version.mjs'

const isSource = existsSync(new URL('../src/main.ts', import.meta.url))
const part = (name) =>
  new URL(isSource ? `../src/${name}.ts` : `../dist/${name}.js`, import.meta.url)

// The job of `pulse run` is somebody's backup: it runs first, whatever is wrong with us.
const job = jobIn(process.argv.slice(2))
if (isSource) returnToCaller()
if (job !== null) {
  const running = runJob(job.command)
  const telling = tellOf(job)
  const code = await running
  const tellEnd = await telling
  await tellEnd(code)
  // Nothing that is still under way may keep the job from being over.
  process.exit(code)
}
if (isTooOld) {
  process.stderr.write(tooOldHere())
  process.exit(1)
}
if (isSource) useCompileCache()
try {
  await import(part('main'))
} catch (error) {
  if (error.code !== 'ERR_MODULE_NOT_FOUND' || !isSource) throw error
  const [what] = /^Cannot find package '[^']+'/.exec(error.message) || ['A file is missing']
  process.stderr.write(`${what}. Run: npm ci\n`)
  process.exitCode = 1
}

/** Tells the job's monitor that it runs. Returns what tells of its end. Never rejects. */
async function tellOf({ name, isPingOnly, isDebug }) {
  const failed = (why) => async (code) => {
    if (code === 0) process.stderr.write(`The command succeeded, and ${why}\n`)
  }
  if (isTooOld) return failed(`there is no ping. ${tooOldHere().trimEnd()}`)
  try {
    if (isSource) useCompileCache()
    const { tellOfRun } = await import(part('cli/pulse/run'))
    return tellOfRun(name, { isPingOnly, isDebug })
  } catch (error) {
    return failed(`the ping failed: ${error}`)
  }
}

/**
 * `npm run mayfly` starts in the folder of the package, and the paths in its arguments are meant from where npm was
 * called. The store of the clone stays the same one.
 */
function returnToCaller() {
  const { INIT_CWD, npm_lifecycle_event, MAYFLY_DATABASE_URL, MAYFLY_DATABASE_URL_FILE } =
    process.env
  const root = fileURLToPath(new URL('..', import.meta.url))
  // A job of `pulse run` inherits these variables, and may have gone elsewhere.
  const isHere = `${process.cwd()}${sep}` === root
  if (npm_lifecycle_event !== 'mayfly' || !INIT_CWD || !isHere) return
  if (job === null && !MAYFLY_DATABASE_URL && !MAYFLY_DATABASE_URL_FILE) {
    process.env.MAYFLY_DATABASE_URL = `sqlite:${join(root, 'data', 'mayfly.db')}`
  }
  try {
    process.chdir(INIT_CWD)
  } catch {
    // The folder is gone: paths can only be meant from here.
  }
}

function tooOldHere() {
  // Where it is installed, this very file: a name alone could bring somebody else's package.
  return tooOld(
    isSource
      ? 'npm ci && npm run --silent mayfly -- …'
      : `npx --yes node@24 ${fileURLToPath(import.meta.url)} …`,
  )
}
