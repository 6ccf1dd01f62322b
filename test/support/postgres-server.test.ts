import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { temporaryFolder } from './folder.ts'
import { startPostgresServer } from './postgres-server.ts'
import { until } from './until.ts'

test('a PostgreSQL server that has died can be stopped', async (t) => {
  const server = await startPostgresServer(await temporaryFolder(t))
  const pid = server.pid()
  process.kill(pid, 'SIGQUIT')
  await until('it is dead', () => isDead(pid))
  await server.stop()
})

test('a process that runs out of work with PostgreSQL at hand keeps its exit code', async () => {
  const program = `await import('./postgres-server.ts'); process.exitCode = 3`
  const code = await new Promise((resolve) => {
    const options = { cwd: import.meta.dirname }
    execFile(process.execPath, ['--input-type=module', '-e', program], options, (error) =>
      resolve(error?.code ?? 0),
    )
  })
  assert.equal(code, 3)
})

function isDead(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}
