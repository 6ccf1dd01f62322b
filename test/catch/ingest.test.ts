import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventTables } from '../../src/catch/event-tables.ts'
import { createIngest } from '../../src/catch/ingest.ts'
import { insertInbox } from '../../src/catch/store.ts'
import { type Db, StoreAway, type Unit } from '../../src/db/db.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createSealing } from '../../src/payment/sealing.ts'
import type { After } from '../support/folder.ts'
import { anEvent, anInbox, ID } from '../support/inboxes.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'
import { until } from '../support/until.ts'

test('an event is acknowledged once a flushed unit has stored it', async (t) => {
  const { ingest, written } = await anIngest(t)
  const stored = await Promise.all(
    (['authenticated', 'public', 'public'] as const).map((access) => ingest({ access })),
  )
  assert.deepEqual(stored, [true, true, true])
  assert.ok(written.length > 0)
  for (const { durability = 'flushed' } of written) assert.equal(durability, 'flushed')
})

test('a store that fails tells each of those whose events came together', async (t) => {
  const { ingest, fail } = await anIngest(t)
  fail()
  const told: unknown[] = []
  for (let i = 0; i < 3; i++) ingest().catch((error: unknown) => told.push(error))
  await until('each is told', () => told.length === 3)
  for (const error of told) assert.ok(error instanceof StoreAway)
})

for (const [limit, inbox] of [
  ['requests', { requestLimit: 5 }],
  ['bytes', { storageLimitBytes: 5 * 3 + 2 }],
] as const) {
  test(`an inbox stores exactly those events of a unit for which it has ${limit}, in sequence`, async (t) => {
    const { db, ingest } = await anIngest(t, inbox)
    const at = (mediaTypes: (string | null)[]): Promise<boolean[]> =>
      Promise.all(mediaTypes.map((mediaType) => ingest({ mediaType })))
    assert.deepEqual(await at([null, 'a/b', null]), [true, true, true])
    assert.deepEqual((await at(['c/d', null, 'e/f'])).sort(), [false, true, true])
    assert.deepEqual(await at([null, null]), [false, false])
    const [counted] = await db.read(
      'select accepted_request_count, stored_bytes from catch_inbox_use',
    )
    assert.deepEqual(counted, { accepted_request_count: 5, stored_bytes: 15 })
    const events = await db.read('select sequence, media_type from catch_event order by sequence')
    const first = events.slice(0, 3).map(({ sequence, media_type }) => [sequence, media_type])
    assert.deepEqual(first, [
      [1, null],
      [2, 'a/b'],
      [3, null],
    ])
    assert.deepEqual([events[3]?.sequence, events[4]?.sequence, events.length], [4, 5, 5])
  })
}

test('events at once are stored in one unit up to the last one that the inbox has room for', async (t) => {
  const { db, ingest, written } = await anIngest(t, {
    requestLimit: 16,
    storageLimitBytes: 16 * 3,
  })
  const full = await Promise.all(Array.from({ length: 16 }, () => ingest()))
  assert.deepEqual([written.length, full.every((isStored) => isStored)], [1, true])
  assert.equal(await ingest(), false)
  const [row] = await db.read('select count(*) as n, max(sequence) as last from catch_event')
  assert.deepEqual(row, { n: 16, last: 16 })
})

/** A store with one inbox, what takes its events of three bytes, and the units that it writes. */
async function anIngest(t: After, inbox: Parameters<typeof anInbox>[0] = {}) {
  const db = await aDatabase(t)
  await db.write(unit(...insertInbox(anInbox(inbox))))
  const written: Unit[] = []
  let isAway = false
  const noting: Db = {
    ...db,
    write(one) {
      if (isAway) return Promise.reject(new StoreAway('full'))
      written.push(one)
      return db.write(one)
    },
  }
  const sealing = createSealing({ db: noting, clock: systemClock })
  const ingest = createIngest(noting, sealing, eventTables(noting).insert)
  const only = { publicId: ID, number: 1, revision: 0 }
  const event = anEvent({ body: new Uint8Array(3), keptBytes: 3 })
  return {
    db,
    written,
    fail: () => {
      isAway = true
    },
    ingest: (some: Partial<typeof event> = {}) => ingest(only, { ...event, ...some }),
  }
}
