/** Locks on a PostgreSQL database that a test holds against the program. */
import assert from 'node:assert/strict'
import type { Statement } from '../../src/db/db.ts'
import { connect, settingsOf } from '../../src/db/postgres/connection.ts'
import type { After } from './folder.ts'
import { aPostgresDatabase } from './postgres.ts'
import { openDatabase, query } from './store.ts'
import { unit } from './unit.ts'

/** Another session that has run these statements in a transaction. @returns what ends it. */
export async function holding(t: After, url: string, text: string): Promise<() => Promise<void>> {
  const { end } = await begun(t, url, [{ text, values: [] }])
  return () => end('rollback')
}

/** Does the work while another session has made a change, which it commits once the work waits for it, or has ended. */
export async function duringChange<T>(
  t: After,
  { databaseUrl, change }: { databaseUrl: string; change: Statement[] },
  work: () => Promise<T>,
): Promise<T> {
  const { end } = await begun(t, databaseUrl, change)
  let isOver = false
  const done = work().finally(() => {
    isOver = true
  })
  while (!isOver && !(await waits(databaseUrl)));
  await end('commit')
  return done
}

/** A store of two instances: a unit of one begins while statements of the other are under way. */
export async function aSharedStore(t: After) {
  const databaseUrl = await aPostgresDatabase()
  const db = await openDatabase(databaseUrl)
  t.after(() => db.close())
  return {
    db,
    overtaken: (change: Statement[], next: Statement[]) =>
      duringChange(t, { databaseUrl, change }, () => db.write(unit(...next))),
  }
}

async function begun(t: After, url: string, statements: Statement[]) {
  const session = await connect(settingsOf(url))
  t.after(() => session.drop())
  const { failure } = await session.send([{ text: 'begin', values: [] }, ...statements])
  assert.equal(failure, null)
  return {
    async end(by: 'commit' | 'rollback'): Promise<void> {
      await session.send([{ text: by, values: [] }])
    },
  }
}

const WAITS = `select 1 as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`

/** Whether a session of the database waits for a lock. */
export const waits = async (databaseUrl: string): Promise<boolean> =>
  (await query({ databaseUrl }, WAITS)).length > 0
