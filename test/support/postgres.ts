/** PostgreSQL for tests: a server of one's own, or a database on the one that a file shares. */
import { after } from 'node:test'
import { type After, temporaryFolder } from './folder.ts'
import { type PostgresServer, startPostgresServer } from './postgres-server.ts'

/** A server of one's own, started, for tests that stop it. */
export async function startPostgres(t: After): Promise<PostgresServer> {
  let server: PostgresServer | undefined
  // Told before the folder is: it goes when nobody writes there any more.
  t.after(() => server?.stop())
  // A test may end a process, never the machine.
  const settings = { fsync: 'off', max_connections: '200' }
  server = await startPostgresServer(await temporaryFolder(t), settings)
  return server
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
