/** Two servers of one cluster: a primary with a database, and a copy of it that may be promoted. */
import { openStore } from '../../src/db/open.ts'
import { type After, temporaryFolder } from './folder.ts'
import { startPostgres } from './postgres.ts'
import { type PostgresServer, startPostgresServer } from './postgres-server.ts'
import { query } from './store.ts'
import { until } from './until.ts'

export async function aPrimaryAndItsStandby(t: After) {
  const first = await startPostgres(t)
  const primary = await first.createDatabase()
  const db = await openStore({ kind: 'postgres', url: primary })
  await db.close()
  await first.stop()
  let second: PostgresServer | undefined
  t.after(() => second?.stop())
  const settings = { fsync: 'off', max_connections: '200' }
  second = await startPostgresServer(await temporaryFolder(t), settings, first.data)
  await first.start()
  const standby = primary.replace(`:${first.port}/`, `:${second.port}/`)
  return {
    /** The database on each server, which has its tables. */
    primary,
    standby,
    servers: { primary: first, standby: second },
    /** The URL that names these servers, in this order. */
    both: (one: string, other: string) => one.replace(/(:\d+)\//, `$1,${new URL(other).host}/`),
    /** The standby becomes a primary, whatever the other one is. */
    async promote() {
      await query({ databaseUrl: standby }, 'select pg_promote()')
      await until('the standby is promoted', async () => {
        const [row] = await query(
          { databaseUrl: standby },
          'select pg_is_in_recovery() as is_standby',
        )
        return row?.is_standby === 0
      })
    },
  }
}
