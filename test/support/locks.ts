/** Locks on a PostgreSQL database that a test holds against the program. */
import assert from 'node:assert/strict'
import { connect, settingsOf } from '../../src/db/postgres/connection.ts'
import type { After } from './folder.ts'
import { query } from './store.ts'

/** Another session that has run these statements in a transaction. @returns what ends it. */
export async function holding(t: After, url: string, text: string): Promise<() => Promise<void>> {
  const session = await connect(settingsOf(url))
  t.after(() => session.drop())
  const { failure } = await session.send([
    { text: 'begin', values: [] },
    { text, values: [] },
  ])
  assert.equal(failure, null)
  return async () => {
    await session.send([{ text: 'rollback', values: [] }])
  }
}

const WAITS = `select 1 as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`

/** Whether a session of the database waits for a lock. */
export const waits = async (databaseUrl: string): Promise<boolean> =>
  (await query({ databaseUrl }, WAITS)).length > 0
