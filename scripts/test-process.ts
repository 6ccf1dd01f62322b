/** What each process of `npm test` begins with: scripts/test.ts has it imported before the tests. */
import hooks from 'node:async_hooks'
import { readFileSync } from 'node:fs'

/** One that never ends would stop the whole run. On however busy a machine, one that does something works longer. */
const IDLE = { minutes: 10, workMs: 1_000 }

let workedMs = workMs()
setInterval(() => {
  const before = workedMs
  workedMs = workMs()
  if (workedMs - before > IDLE.workMs) return
  const open = process.getActiveResourcesInfo().join(', ')
  process.stderr.write(`This process did nothing for ${IDLE.minutes} minutes: ${open}\n`)
  process.exit(1)
}, IDLE.minutes * 60_000).unref()

function workMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

process.on('exit', (code) => {
  if (code === 0) return
  const imports = readFileSync(String(process.argv[1]).replace(/\.test\.ts$/, '.tests.ts'), 'utf8')
  const names = imports.matchAll(/test\/\S+\.(?:test|nightly|postgres)\.ts/g)
  process.stderr.write(`A process failed that ran ${[...names].join(', ')}\n`)
})

// To name the test of an error that nobody caught, the runner follows every promise, which is up to half of the
// work in tests of streams. Without that, a rejection that nobody caught fails its file and names no test.
const { createHook } = hooks
hooks.createHook = (callbacks) => createHook({ ...callbacks, trackPromises: false })
