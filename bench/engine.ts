/** The engines that rows run on. Both flush to disk before they acknowledge a commit. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Row } from '../src/db/db.ts'
import { connect, settingsOf } from '../src/db/postgres/connection.ts'
import { startPostgresServer } from '../test/support/postgres-server.ts'
import { cpuMsOfFamily } from './cpu.ts'

export type Engine = {
  /** The first word of a row's line. Empty for the default engine. */
  prefix: string
  newStore(): Promise<BenchStore>
  /** CPU time of the store's own processes until now, in milliseconds. */
  cpuMs(): number
  stop(): Promise<void>
}

export type BenchStore = {
  /** The environment of the service. */
  environment: Record<string, string>
  /** Runs a query while the service runs. */
  rows(text: string): Promise<Row[]>
  remove(): Promise<void>
}

/** A store in a file, in a new folder. */
export type FileStore = BenchStore & { file: string }

/** A thread of the service runs SQLite, so its CPU time is part of the service's. */
export const SQLITE: Engine = {
  prefix: '',
  newStore: newFileStore,
  cpuMs: () => 0,
  stop: async () => {},
}

export async function newFileStore(): Promise<FileStore> {
  const folder = await newFolder()
  const file = join(folder, 'mayfly.db')
  return {
    file,
    environment: { MAYFLY_DATABASE_URL: `sqlite:${file}` },
    async rows(text) {
      const store = new DatabaseSync(file, { readOnly: true })
      const rows = store.prepare(text).all() as Row[]
      store.close()
      return rows
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Starts a PostgreSQL server with its defaults: `fsync` and `synchronous_commit` are on. */
export async function startPostgresEngine(): Promise<Engine> {
  const folder = await newFolder()
  const server = await startPostgresServer(folder)
  return {
    prefix: 'postgres ',
    cpuMs: () => cpuMsOfFamily(server.pid()),
    async newStore() {
      const url = await server.createDatabase()
      const secret = randomBytes(32).toString('hex')
      return {
        environment: { MAYFLY_DATABASE_URL: url, MAYFLY_SECRET: secret },
        async rows(text) {
          const connection = await connect(settingsOf(url))
          const { results, failure } = await connection.send([{ text, values: [] }])
          await connection.end()
          if (failure) throw failure.error
          return results[0]?.rows ?? []
        },
        // The database is removed with the server.
        remove: async () => {},
      }
    },
    async stop() {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'mayfly-bench-'))
