/** A service of one or more processes on one store, which a test may kill, and its books. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { openStore } from '../../src/db/open.ts'
import type { StoreUrl } from '../../src/db/server-urls.ts'
import { audit, settledBySimulator } from '../support/accounting.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { startPostgres } from '../support/postgres.ts'
import type { PostgresServer } from '../support/postgres-server.ts'
import { type Program, startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'
import { type Load, startLoad } from './load.ts'

/** A store, and the server behind it where it has one. */
export type Store = { where: StoreUrl; url: string; server: PostgresServer | null }

export type Service = {
  store: Store
  load: Load
  /** The processes by their place; null while one is dead. */
  programs: (Program | null)[]
  /** Ends the process at this place without a chance to say goodbye. */
  kill(place: number): Promise<void>
  /** Starts a process there, of this version unless `bin` names the program of another. */
  start(place: number, bin?: string): Promise<void>
  /** Waits until so many more promises were made. */
  progress(more: number): Promise<void>
  /** Ends the load and the processes, and resolves to all that is wrong. */
  close(): Promise<string[]>
}

export async function sqliteStore(t: After): Promise<Store> {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  return { where: { kind: 'sqlite', file }, url: `sqlite:${file}`, server: null }
}

export async function postgresStore(t: After): Promise<Store> {
  const server = await startPostgres(t)
  return { ...storeAt(await server.createDatabase()), server }
}

/** A database on a server that a drill looks after itself. */
export const storeAt = (url: string): Store => ({
  where: { kind: 'postgres', url },
  url,
  server: null,
})

/** Starts the processes, and the load on them. */
export async function startService(
  t: After,
  store: Store,
  {
    instances = 1,
    environment = {},
    bin: first,
  }: { instances?: number; environment?: Record<string, string>; bin?: string },
): Promise<Service> {
  const secret = randomBytes(32).toString('hex')
  const programs: (Program | null)[] = Array.from({ length: instances }, () => null)

  async function start(place: number, bin?: string): Promise<void> {
    programs[place] = await startProgram(t, '', {
      ...(bin ? { bin } : {}),
      environment: {
        MAYFLY_DATABASE_URL: store.url,
        MAYFLY_SECRET: secret,
        MAYFLY_RATE_LIMITS: 'off',
        ...environment,
      },
    })
  }
  await Promise.all(programs.map((_, place) => start(place, first)))

  const up = (): Program[] => programs.filter((program) => program !== null)
  const load = startLoad(() => up().map(({ url }) => url))
  t.after(load.abandon)

  return {
    store,
    load,
    programs,
    async kill(place) {
      const program = programs[place]
      programs[place] = null
      await program?.kill()
    },
    start,
    async progress(more) {
      const enough = load.acknowledged() + more
      await until(`${more} more promises`, () => load.acknowledged() >= enough)
    },
    async close() {
      await load.stop()
      for (const program of up()) {
        program.signal('SIGTERM')
        await program.ended
      }
      const db = await openStore(store.where)
      try {
        const settled = await settledBySimulator(db)
        return [...load.surprises, ...(await audit({ db, settled, told: load.told }))]
      } finally {
        await db.close()
      }
    },
  }
}
