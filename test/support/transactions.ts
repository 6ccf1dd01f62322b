/** Runs units as transactions on different connections, like those of many instances. */
import { Pool } from 'pg'
import type { Statement } from '../../src/db/db.ts'
import { openStore } from '../../src/db/open.ts'
import { aPostgresDatabase } from './postgres.ts'

/** Twenty connections to a PostgreSQL database of this version. */
export async function aPool(): Promise<Pool> {
  const url = await aPostgresDatabase()
  await (await openStore({ kind: 'postgres', url })).close()
  const pool = new Pool({ connectionString: url, max: 20 })
  // The pool ends before its connections have ended, and the server may stop in between.
  pool.on('error', () => {})
  return pool
}

/** Returns true if every statement met its condition. Otherwise nothing was changed. */
export async function inTransaction(pool: Pool, statements: Statement[]): Promise<boolean> {
  const client = await pool.connect()
  try {
    await client.query('begin isolation level read committed')
    for (const { text, values, expect } of statements) {
      const { rowCount } = await client.query(text, values)
      if (expect !== undefined && rowCount !== expect) {
        await client.query('rollback')
        return false
      }
    }
    await client.query('commit')
    return true
  } finally {
    client.release()
  }
}
