import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createEventStore, type EventFilter } from '../../src/catch/event-store.ts'
import { eventTables } from '../../src/catch/event-tables.ts'
import { keptBytes, MAX_HEADER_LINES, packHeaders } from '../../src/catch/kept.ts'
import { insertInbox } from '../../src/catch/store.ts'
import type { Db } from '../../src/db/db.ts'
import type { After } from '../support/folder.ts'
import { anEvent, anInbox } from '../support/inboxes.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

/** The number of the first inbox of a store. */
const ONLY = 1

/** The most that headers take in the store besides what counts: short lines, and a type with a column of its own. */
const MANY_HEADERS = [
  ...['content-type', `text/${'x'.repeat(250)}`],
  ...Array.from({ length: MAX_HEADER_LINES - 1 }, () => ['a', 'b']).flat(),
]

suite('the size that the store tells of an event', () => {
  for (const { name, event } of [
    { name: 'a long body', event: { body: 50_000 } },
    { name: 'a long path', event: { path: '/'.repeat(15_000) } },
    { name: 'a long query', event: { query: 'q'.repeat(15_000) } },
    { name: 'long headers', event: { headers: ['a', 'x'.repeat(15_000)] } },
    { name: 'many headers', event: { headers: MANY_HEADERS } },
    { name: 'next to nothing', event: {} },
  ]) {
    test(`the size of an event with ${name} is at least that of all its columns, and hardly more`, async (t) => {
      const db = await aStoreWith(t, event)
      await checkSizes(db)
    })
  }

  test('an event whose head is above the limit is not read, however short its body is', async (t) => {
    const db = await aStoreWith(t, { path: '/'.repeat(15_000), body: 1 })
    const store = createEventStore(db, eventTables(db))
    const [row] = await store.first(ONLY, OLDEST, { limit: 1, bytes: 15_000 })
    assert.equal(row?.body, null)
  })
})

type Parts = { path?: string; query?: string; headers?: string[]; body?: number }

/** A store with one event of these parts, in an inbox of its own. */
async function aStoreWith(
  t: After,
  { path = '', query = '', headers = [], body = 0 }: Parts,
): Promise<Db> {
  const db = await aDatabase(t)
  const event = anEvent({
    path,
    query,
    headerLines: packHeaders(headers),
    sourceIp: '203.0.113.1',
    body: new Uint8Array(body),
    keptBytes: keptBytes({ path, query, headers, body: { length: body } }),
  })
  const large = { storageLimitBytes: 1_000_000, maxBytesPerRequest: 100_000 }
  await db.write(unit(...insertInbox(anInbox(large))))
  await db.write(unit(...eventTables(db).insert({ number: ONLY, revision: 0 }, [event])))
  return db
}

/** However an event is asked for, its size is told. */
async function checkSizes(db: Db): Promise<void> {
  const store = createEventStore(db, eventTables(db))
  const whole = await store.event(ONLY, 1)
  assert.ok(whole)
  const { path, query, header_lines, body } = whole
  const columns = [path, query, header_lines, body]
  const bytes = columns.reduce((sum, { length }) => sum + length, 0)
  const sequences = [1]
  for (const asked of [
    store.first(ONLY, OLDEST, { limit: 9, bytes: 0 }),
    store.first(ONLY, OLDEST, { limit: 9, bytes: 9e6 }),
    store.json(ONLY, { sequences, order: 'newest' }),
    store.window(ONLY, OLDEST, 9),
  ]) {
    const [{ size } = { size: -1 }] = await asked
    assert.ok(size >= bytes && size <= bytes + 1024, `${size} for ${bytes} bytes`)
  }
}

const OLDEST = { order: 'oldest', from: 0, equal: [] } as EventFilter
