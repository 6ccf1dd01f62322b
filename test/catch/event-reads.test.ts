/** What a reader asks for is of one inbox, beyond where it stands, and no more than it asked for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEventStore, type EventFilter, type Order } from '../../src/catch/event-store.ts'
import { eventTables, type NewEvent } from '../../src/catch/event-tables.ts'
import { insertInbox } from '../../src/catch/store.ts'
import type { After } from '../support/folder.ts'
import { anEvent, anInbox } from '../support/inboxes.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

/** The numbers of the inboxes, in the order of their sale. */
const NUMBERS = { a: 1, b: 2, c: 3 }
const { b: B } = NUMBERS
/** The bytes of an event's columns, at most, without what it says itself. */
const EMPTY_EVENT = 1024

test('the first events are those of one inbox beyond where the reader stands, so many at most', async (t) => {
  const { store } = await aStore(t)
  const first = async (order: Order, from: number, limit: number) =>
    (await store.first(B, { order, from, equal: [] }, { limit, bytes: 9e6 })).map(
      ({ sequence }) => sequence,
    )
  assert.deepEqual(await first('newest', 9, 2), [4, 3])
  assert.deepEqual(await first('newest', 3, 2), [2, 1])
  assert.deepEqual(await first('oldest', 0, 9), [1, 2, 3, 4])
  assert.deepEqual(await first('oldest', 1, 2), [2, 3])
  assert.deepEqual(await first('oldest', 4, 9), [])
})

test('the first events that match are found beyond those that do not', async (t) => {
  const { store } = await aStore(t)
  const filter: EventFilter = { order: 'newest', from: 9, equal: [['method', 'PUT']] }
  const [only, ...more] = await store.first(B, filter, { limit: 1, bytes: 9e6 })
  assert.deepEqual([only?.sequence, only?.size, more], [1, EMPTY_EVENT + 10, []])
})

test('an event is read up to its part of the bytes, to the byte', async (t) => {
  const { store, ingest } = await aStore(t)
  await ingest('b', [
    { path: 'd1', keptBytes: 6 },
    { path: 'd2', keptBytes: 7 },
  ])
  const ofTwo = { limit: 2, bytes: 2 * (EMPTY_EVENT + 6) }
  const rows = await store.first(B, { order: 'oldest', from: 4, equal: [] }, ofTwo)
  assert.deepEqual(
    rows.map(({ size, path }) => [path, size]),
    [
      ['d1', EMPTY_EVENT + 6],
      [null, EMPTY_EVENT + 7],
    ],
  )
})

test('events that are named are read, and no others', async (t) => {
  const { store } = await aStore(t)
  const paths = async (order: Order) =>
    (await store.json(B, { sequences: [2, 4, 9], order })).map((row) => [
      row.sequence,
      row.json && pathIn(row.json),
    ])
  const oldest = [
    [2, 'b2'],
    [4, 'b4'],
  ]
  assert.deepEqual(await paths('oldest'), oldest)
  assert.deepEqual(await paths('newest'), oldest.toReversed())
  assert.equal((await store.event(B, 2))?.path, 'b2')
  assert.equal(await store.event(B, 9), null)
})

test('a search looks at the events that are named, and finds those that have its text', async (t) => {
  const { store } = await aStore(t)
  const searched = async (wanted: string, order: Order) =>
    (await store.searched(B, { sequences: [1, 2, 4], order }, wanted)).map((row) => {
      assert.equal(row.has_text, 1)
      return row.sequence
    })
  assert.deepEqual(await searched('B', 'newest'), [4, 2, 1])
  assert.deepEqual(await searched('b4', 'oldest'), [4])
  for (const other of ['b3', 'a']) assert.deepEqual(await searched(other, 'newest'), [])
})

test('a search looks at so many events of its inbox in turn, and is told which of them match', async (t) => {
  const { store, ingest } = await aStore(t)
  const looked = async (order: Order, from: number, limit: number) => {
    const filter: EventFilter = { order, from, equal: [['method', 'POST']] }
    const rows = await store.window(B, filter, limit)
    return rows.map(({ sequence, matches }) => (matches ? sequence : -sequence))
  }
  assert.deepEqual(await looked('newest', 9, 2), [4, 3])
  assert.deepEqual(await looked('newest', 3, 2), [2, -1])
  assert.deepEqual(await looked('newest', 1, 2), [])
  assert.deepEqual(await looked('oldest', 0, 1), [-1])
  assert.deepEqual(await looked('oldest', 0, 3), [-1, 2, 3])
  assert.deepEqual(await looked('oldest', 4, 3), [])
  // Another inbox has more.
  await ingest('c', [{}, {}, {}])
  assert.deepEqual(await looked('oldest', 3, 9), [4])
  const all = await store.window(B, { order: 'oldest', from: 0, equal: [] }, 9)
  assert.ok(all.every(({ matches }) => matches))
})

const pathIn = (json: Uint8Array): string => JSON.parse(Buffer.from(json).toString()).path

/** The inboxes `a`, `b` and `c` with four events each, whose first alone is a PUT. */
async function aStore(t: After) {
  const db = await aDatabase(t)
  const tables = eventTables(db)
  const ingest = (inbox: keyof typeof NUMBERS, events: Partial<NewEvent>[]) =>
    db.write(unit(...tables.insert({ number: NUMBERS[inbox], revision: 0 }, events.map(anEvent))))
  for (const publicId of Object.keys(NUMBERS)) {
    await db.write(unit(...insertInbox(anInbox({ publicId, requestLimit: 99 }))))
  }
  for (const inbox of ['a', 'b', 'c'] as const) {
    await ingest(
      inbox,
      [1, 2, 3, 4].map((n) => ({
        path: `${inbox}${n}`,
        method: n === 1 ? 'PUT' : 'POST',
        query: 'q=1',
        headerLines: Buffer.from('X:yz\n'),
        body: new Uint8Array(n),
      })),
    )
  }
  return { ingest, store: createEventStore(db, tables) }
}
