import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventTables } from '../../src/catch/event-tables.ts'
import { createIngest } from '../../src/catch/ingest.ts'
import { insertInbox } from '../../src/catch/store.ts'
import { type Db, StoreAway, type Unit } from '../../src/db/db.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createSealing } from '../../src/payment/sealing.ts'
import { anEvent, anInbox, ID } from '../support/inboxes.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'
import { until } from '../support/until.ts'

test('an event is acknowledged once a flushed unit has stored it', async (t) => {
  const store = await openDatabase(await aDatabaseUrl(t))
  t.after(() => store.close())
  await store.write(unit(...insertInbox(anInbox())))
  const written: Unit[] = []
  const db: Db = {
    ...store,
    write(one) {
      written.push(one)
      return store.write(one)
    },
  }
  const ingest = createIngest(db, createSealing({ db, clock: systemClock }), eventTables(db).insert)
  const stored = await Promise.all(
    (['authenticated', 'public', 'public'] as const).map((access) =>
      ingest(ONLY, { ...EVENT, access }),
    ),
  )
  assert.deepEqual(stored, [true, true, true])
  assert.ok(written.length > 0)
  for (const { durability = 'flushed' } of written) assert.equal(durability, 'flushed')
})

test('a store that fails tells each of those whose events came together', async (t) => {
  const store = await openDatabase(await aDatabaseUrl(t))
  t.after(() => store.close())
  const db: Db = { ...store, write: () => Promise.reject(new StoreAway('full')) }
  const ingest = createIngest(db, createSealing({ db, clock: systemClock }), eventTables(db).insert)
  const told: unknown[] = []
  for (let i = 0; i < 3; i++) {
    ingest(ONLY, EVENT).catch((error: unknown) => told.push(error))
  }
  await until('each is told', () => told.length === 3)
  for (const error of told) assert.ok(error instanceof StoreAway)
})

const EDGES: [limit: string, inbox: Partial<Parameters<typeof insertInbox>[0]>][] = [
  ['requests', { requestLimit: 5 }],
  ['bytes', { storageLimitBytes: 5 * 3 + 2 }],
]

for (const [limit, inbox] of EDGES) {
  test(`an inbox stores exactly those events of a unit for which it has ${limit}, in sequence`, async (t) => {
    const db = await openDatabase(await aDatabaseUrl(t))
    t.after(() => db.close())
    await db.write(unit(...insertInbox(anInbox(inbox))))
    const ingest = createIngest(
      db,
      createSealing({ db, clock: systemClock }),
      eventTables(db).insert,
    )
    const at = (mediaTypes: (string | null)[]): Promise<boolean[]> =>
      Promise.all(mediaTypes.map((mediaType) => ingest(ONLY, { ...EVENT, mediaType })))
    assert.deepEqual(await at([null, 'a/b', null]), [true, true, true])
    assert.deepEqual((await at(['c/d', null, 'e/f'])).sort(), [false, true, true])
    assert.deepEqual(await at([null, null]), [false, false])
    const [counted] = await db.read(
      'select accepted_request_count, stored_bytes, last_sequence from catch_inbox_use',
    )
    assert.deepEqual(counted, { accepted_request_count: 5, stored_bytes: 15, last_sequence: 5 })
    const events = await db.read('select sequence, media_type from catch_event order by sequence')
    assert.deepEqual(
      events.map(({ sequence }) => sequence),
      [1, 2, 3, 4, 5],
    )
    assert.deepEqual(
      events.slice(0, 3).map(({ media_type }) => media_type),
      [null, 'a/b', null],
    )
  })
}

test('events at once are stored in one unit up to the last one that the inbox has room for', async (t) => {
  const store = await openDatabase(await aDatabaseUrl(t))
  t.after(() => store.close())
  await store.write(unit(...insertInbox(anInbox({ requestLimit: 16, storageLimitBytes: 16 * 3 }))))
  let units = 0
  const db: Db = {
    ...store,
    write(one) {
      units++
      return store.write(one)
    },
  }
  const ingest = createIngest(db, createSealing({ db, clock: systemClock }), eventTables(db).insert)
  const full = await Promise.all(Array.from({ length: 16 }, () => ingest(ONLY, EVENT)))
  assert.deepEqual([units, full.every((isStored) => isStored)], [1, true])
  assert.equal(await ingest(ONLY, EVENT), false)
  const [row] = await db.read('select count(*) as n, max(sequence) as last from catch_event')
  assert.deepEqual(row, { n: 16, last: 16 })
})

/** The first inbox of a store. */
const ONLY = { publicId: ID, number: 1, revision: 0 }
const EVENT = anEvent({ body: new Uint8Array(3), keptBytes: 3 })
