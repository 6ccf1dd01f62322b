/** PostgreSQL for tests: a new server, or a new database on a server that the file shares. */
import { after } from 'node:test'
import { type After, temporaryFolder } from './folder.ts'
import { type PostgresServer, startPostgresServer } from './postgres-server.ts'

/** Starts a new server, for tests that stop it. */
export async function startPostgres(t: After): Promise<PostgresServer> {
  let server: PostgresServer | undefined
  // Hooks run in the order in which they are set, so the server stops before the folder is removed.
  t.after(() => server?.stop())
  // Tests end processes but not the machine, so nothing needs a flush to disk.
  const settings = { fsync: 'off', max_connections: '200' }
  server = await startPostgresServer(await temporaryFolder(t), settings)
  return server
}

let shared: Promise<PostgresServer> | null = null
const endings: (() => unknown)[] = []
// A hook belongs to the test or suite that runs when it is set, so this one is set for the file.
after(async () => {
  for (const end of endings) await end()
})

/** The URL of a new database, empty or a copy, on a server that the tests of this file share. */
export async function aPostgresDatabase(template?: string): Promise<string> {
  shared ??= startPostgres({ after: (work) => endings.push(work) })
  return (await shared).createDatabase(template)
}
