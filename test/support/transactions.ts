/** Runs units as transactions on different connections, like those of many instances. */
import { readFile } from 'node:fs/promises'
import { Pool } from 'pg'
import type { Statement } from '../../src/db/db.ts'
import { aPostgresDatabase } from './postgres.ts'

/** Twenty connections to a PostgreSQL database with these migrations. */
export async function aPool(migrations: string[]): Promise<Pool> {
  const pool = new Pool({ connectionString: await aPostgresDatabase(), max: 20 })
  // The pool ends before its connections have ended, and the server may stop in between.
  pool.on('error', () => {})
  for (const name of migrations) {
    const file = new URL(`../../src/db/migrations/${name}.sql`, import.meta.url)
    const text = await readFile(file, 'utf8')
    await pool.query(text.replaceAll(/\bblob\b/g, 'bytea').replaceAll(/\binteger\b/g, 'bigint'))
  }
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
