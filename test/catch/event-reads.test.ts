/** What a reader asks for is of one inbox, beyond where it stands, and no more than it asked for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEventStore, type EventFilter, type Order } from '../../src/catch/event-store.ts'
import { eventTables, type NewEvent } from '../../src/catch/event-tables.ts'
import { insertInbox } from '../../src/catch/store.ts'
import type { After } from '../support/folder.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

/** The numbers of the inboxes, in the order of their sale. */
const NUMBERS = { a: 1, b: 2, c: 3, d: 4 }
const { b: B, d: D } = NUMBERS
const MANY = { limit: 9, bytes: 9e6, latestSequence: 4 }
/** The bytes of an event's columns, at most, without what it says itself. */
const EMPTY_EVENT = 1024

test('the first events are those of one inbox beyond the cursor, and a page of the newest says where the next begins', async (t) => {
  const { store } = await aStore(t)
  const first = async (order: Order, from: number, limit: number) => {
    const [page] = await store.first(B, { order, from, equal: [] }, { ...MANY, limit })
    return shown(page)
  }
  assert.deepEqual(await first('newest', 9, 2), { paths: ['b4', 'b3'], next: 3, latest: 4 })
  assert.deepEqual(await first('newest', 3, 2), { paths: ['b2', 'b1'], next: null, latest: 4 })
  assert.deepEqual(await first('newest', 3, 1), { paths: ['b2'], next: 2, latest: 4 })
  assert.deepEqual(await first('oldest', 0, 2), { paths: ['b1', 'b2'], next: null, latest: 4 })
  assert.deepEqual(await first('oldest', 2, 9), { paths: ['b3', 'b4'], next: null, latest: 4 })
})

test('the first events that match are found beyond those that do not', async (t) => {
  const { store } = await aStore(t)
  const filter: EventFilter = { order: 'newest', from: 9, equal: [['method', 'PUT']] }
  const [page] = await store.first(B, filter, { ...MANY, limit: 1 })
  assert.deepEqual(shown(page), { paths: ['b1'], next: null, latest: 4 })
})

test('the oldest events are those above a sequence, so many at most', async (t) => {
  const { store } = await aStore(t)
  const oldest = async (above: number, limit: number) =>
    (await store.some(B, { order: 'oldest', from: above, equal: [] }, { ...MANY, limit })).map(
      (row) => 'path' in row && row.path,
    )
  assert.deepEqual(await oldest(0, 9), ['b1', 'b2', 'b3', 'b4'])
  assert.deepEqual(await oldest(2, 9), ['b3', 'b4'])
  assert.deepEqual(await oldest(1, 2), ['b2', 'b3'])
})

test('an event is read up to its part of the bytes, to the byte', async (t) => {
  const { store, ingest } = await aStore(t)
  await ingest('d', [{ path: 'd1', keptBytes: 6 }, { path: 'd2', keptBytes: 7 }, {}])
  const ofTwo = { limit: 2, bytes: 2 * (EMPTY_EVENT + 6) }
  const rows = await store.some(D, { order: 'oldest', from: 0, equal: [] }, ofTwo)
  assert.deepEqual(
    rows.map((row) => ['path' in row && row.path, row.size]),
    [
      ['d1', EMPTY_EVENT + 6],
      [null, EMPTY_EVENT + 7],
    ],
  )
  const sequences = [1, 2]
  const sized = await store.sized(
    D,
    { sequences, nextCursor: 5 },
    { ...MANY, ...ofTwo, order: 'oldest' },
  )
  assert.deepEqual(sized, [
    { json: null, sequence: 1, size: EMPTY_EVENT + 6, next: 5 },
    { json: null, sequence: 2, size: EMPTY_EVENT + 7, next: 5 },
  ])
})

test('events that are named are read, and no others', async (t) => {
  const { store } = await aStore(t)
  const sequences = [2, 4, 9]
  const paths = ['b2', 'b4']
  const found = { sequences, nextCursor: 7 }
  const [page] = await store.sized(B, found, { ...MANY, order: 'oldest' })
  assert.deepEqual(shown(page), { paths, next: 7, latest: 4 })
  const json = await store.json(B, { sequences, order: 'oldest' })
  assert.deepEqual(
    json.map((row) => [row.sequence, JSON.parse(Buffer.from(row.json).toString()).path]),
    [
      [2, 'b2'],
      [4, 'b4'],
    ],
  )
  const whole = await store.events(B, sequences)
  assert.deepEqual(
    whole.map(({ path }) => path),
    paths.toReversed(),
  )
})

test('a search looks at the events that are named, and finds those that have its text', async (t) => {
  const { store } = await aStore(t)
  const searched = (wanted: string, order: Order) =>
    store.searched(B, { sequences: [1, 2, 4], order }, wanted)
  assert.deepEqual(await searched('B', 'newest'), [
    { sequence: 4, body_bytes: 4 },
    { sequence: 2, body_bytes: 2 },
    { sequence: 1, body_bytes: 1 },
  ])
  assert.deepEqual(await searched('b4', 'oldest'), [{ sequence: 4, body_bytes: 4 }])
  for (const other of ['b3', 'a']) assert.deepEqual(await searched(other, 'newest'), [])
})

test('a search looks at so many events of its inbox in turn, of which it is told those that match', async (t) => {
  const { store, ingest } = await aStore(t)
  const sizes = async (order: Order, from: number, limit: number) => {
    const filter: EventFilter = { order, from, equal: [['method', 'POST']] }
    const { sizes: rows, last } = await store.sizes(B, filter, limit)
    return { found: rows.map(({ sequence }) => sequence), last }
  }
  assert.deepEqual(await sizes('newest', 9, 2), { found: [4, 3], last: 3 })
  assert.deepEqual(await sizes('newest', 3, 2), { found: [2], last: 1 })
  assert.deepEqual(await sizes('newest', 1, 2), { found: [], last: null })
  assert.deepEqual(await sizes('oldest', 0, 1), { found: [], last: 1 })
  assert.deepEqual(await sizes('oldest', 0, 3), { found: [2, 3], last: 3 })
  assert.deepEqual(await sizes('oldest', 4, 3), { found: [], last: null })
  // Another inbox has more.
  await ingest('c', [{}, {}, {}])
  assert.deepEqual(await sizes('oldest', 3, 9), { found: [4], last: 4 })
})

test('a search is told of the bytes that it reads of each event', async (t) => {
  const { store } = await aStore(t)
  const bytes = async () => {
    const { sizes } = await store.sizes(B, { order: 'oldest', from: 0, equal: [] }, 9)
    return sizes.map((row) => row.bytes)
  }
  // A body of 1 to 4 bytes, a path of 2, a query of 3 and headers of 5.
  assert.deepEqual(await bytes(), [11, 12, 13, 14])
})

function shown(page: { json: Uint8Array | null; next: number | null } | undefined) {
  const { events, nextCursor, latestSequence } = JSON.parse(
    Buffer.from(page?.json ?? []).toString(),
  )
  assert.equal(nextCursor, page?.next)
  const paths = events.map(({ path }: { path: string }) => path)
  return { paths, next: nextCursor, latest: latestSequence }
}

/** The inboxes `a`, `b` and `c` with four events each, whose first alone is a PUT, and `d` without. */
async function aStore(t: After) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  const tables = eventTables(db)
  const ingest = (inbox: keyof typeof NUMBERS, events: Partial<NewEvent>[]) =>
    db.write(unit(...tables.insert({ number: NUMBERS[inbox], revision: 0 }, events.map(anEvent))))
  for (const publicId of Object.keys(NUMBERS)) {
    await db.write(
      unit(
        ...insertInbox({
          ...{ publicId, planId: 'spark', createdAt: 0, expiresAt: 10 },
          ...{ ownerTokenHash: new Uint8Array([1]), ingestTokenHash: new Uint8Array([2]) },
          ...{ requestLimit: 99, storageLimitBytes: 9999, maxBytesPerRequest: 50 },
        }),
      ),
    )
  }
  for (const inbox of ['a', 'b', 'c'] as const) {
    await ingest(
      inbox,
      [1, 2, 3, 4].map((n) => ({
        ...{ path: `${inbox}${n}`, method: n === 1 ? 'PUT' : 'POST', query: 'q=1' },
        ...{ headerLines: Buffer.from('X:yz\n'), body: new Uint8Array(n) },
      })),
    )
  }
  return { ingest, store: createEventStore(db, tables.source) }
}

const anEvent = (some: Partial<NewEvent>): NewEvent => ({
  ...{ salt: 7, receivedAt: 1, access: 'public', method: 'POST', path: '', query: '' },
  ...{ headerLines: new Uint8Array(), contentType: null, mediaType: null },
  ...{ body: new Uint8Array(), keptBytes: 10, bodySha256: '', sourceIp: '', ipLocation: null },
  ...some,
})
