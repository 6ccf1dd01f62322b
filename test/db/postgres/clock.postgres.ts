import assert from 'node:assert/strict'
import { test } from 'node:test'
import { databaseTime, openClock } from '../../../src/db/clock.ts'
import type { Db } from '../../../src/db/db.ts'
import type { After } from '../../support/folder.ts'
import { aPostgresDatabase } from '../../support/postgres.ts'
import { openDatabase } from '../../support/store.ts'

const HOUR = 60 * 60_000

async function aStore(t: After): Promise<Db> {
  const db = await openDatabase(await aPostgresDatabase())
  t.after(() => db.close())
  return db
}

/** The times between which `work` ran, by the database, and what it returned. */
async function during<T>(db: Db, work: () => Promise<T>) {
  const time = async (rounded: 'floor' | 'ceil'): Promise<number> => {
    const [row] = await db.read(
      `select cast(${rounded}(extract(epoch from clock_timestamp()) * 1000) as bigint) as at`,
    )
    return Number(row?.at)
  }
  const from = await time('floor')
  const result = await work()
  return { from, result, until: await time('ceil') }
}

test("PostgreSQL's time is that of the middle of a quick answer, and a slow answer says none", async (t) => {
  const db = await aStore(t)
  const readIn = (ms: number) => {
    const times = [40, 40 + ms]
    return databaseTime(db, () => times.shift() ?? Number.NaN)()
  }
  const { from, result, until } = await during(db, () => readIn(1_000))
  assert.equal(result?.monotonic, 540)
  assert.ok(Number.isInteger(result.at) && from <= result.at && result.at <= until, `${result.at}`)
  assert.equal(await readIn(1_001), null)
})

test('instances whose machines disagree share the time of PostgreSQL, without a jump', async (t) => {
  const db = await aStore(t)
  const events: string[] = []
  const note = ({ event }: { event: string }) => void events.push(event)
  const open = (wrongBy: number) =>
    openClock({
      db,
      log: { info: note, warn: note, error: note },
      machine: { now: () => Date.now() + wrongBy, monotonic: () => 0 },
      readTime: databaseTime(db, () => 0),
      onReanchor: () => note({ event: 'counted' }),
    })
  for (const wrongBy of [-HOUR, 0, HOUR]) {
    const { from, result, until } = await during(db, async () => {
      const clock = await open(wrongBy)
      await clock.beat()
      return clock.now()
    })
    assert.ok(from <= result && result <= until, `${wrongBy}`)
  }
  assert.deepEqual(events, [])
})
