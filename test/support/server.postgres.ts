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
  const { code } = await run(`await import('./postgres-server.ts'); process.exitCode = 3`)
  assert.equal(code, 3)
})

test('a process that exits takes its PostgreSQL server with it, and says nothing', async (t) => {
  const folder = await temporaryFolder(t)
  const { code, stdout, stderr } = await run(`
    const { startPostgresServer } = await import('./postgres-server.ts')
    const server = await startPostgresServer(${JSON.stringify(folder)})
    process.stdout.write(String(server.pid()), () => process.exit(3))`)
  assert.deepEqual([code, stderr], [3, ''])
  await until('the server is dead', () => isDead(Number(stdout)))
})

type Ended = { code: number | string; stdout: string; stderr: string }

function run(program: string): Promise<Ended> {
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program]
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: import.meta.dirname }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    )
  })
}

function isDead(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}
