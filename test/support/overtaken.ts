/** Two instances on one PostgreSQL: a unit of one that begins while a unit of the other is under way. */
import type { Db, Statement, Unit } from '../../src/db/db.ts'
import { connect, settingsOf } from '../../src/db/postgres/connection.ts'
import { aPostgresDatabase } from './postgres.ts'
import { openDatabase } from './store.ts'
import { unit } from './unit.ts'
import { until } from './until.ts'

const WAITING = `select 1 from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock'`

/** A store, and what another instance does beside it. */
export async function aSharedStore(t: { after(work: () => unknown): void }) {
  const url = await aPostgresDatabase()
  const db = await openDatabase(url)
  const other = await connect(settingsOf(url))
  t.after(async () => {
    await other.end()
    await db.close()
  })
  return {
    db,
    /** Runs statements of another instance. Their transaction ends when `next` has ended, or waits for its locks. */
    async overtaken(statements: Statement[], next: Statement[]): Promise<void> {
      const begun = { text: 'begin', values: [] }
      const { failure } = await other.send([begun, ...statements])
      if (failure) throw failure.error
      let hasEnded = false
      const ended = write(db, unit(...next)).finally(() => {
        hasEnded = true
      })
      await until('the unit ends or waits', async () => {
        return hasEnded || (await db.read(WAITING)).length > 0
      })
      await other.send([{ text: 'commit', values: [] }])
      await ended
    },
  }
}

const write = (db: Db, one: Unit<'all'>): Promise<unknown> => db.write(one)
