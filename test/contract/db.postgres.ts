import { openPostgres } from '../../src/db/postgres/postgres.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { dbContract } from './db.ts'

dbContract(
  'PostgreSQL',
  async (t) => {
    const url = await aPostgresDatabase()
    const open = async () => {
      const db = await openPostgres(url)
      t.after(() => db.close().catch(() => undefined))
      return db
    }
    return { db: await open(), reopen: open }
  },
  { bytes: 'bytea', integer: 'bigint' },
)
