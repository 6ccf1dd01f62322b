/** Each statement changes one inbox, under its conditions, and leaves the others alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deleteEvent } from '../../src/catch/event-store.ts'
import { eventTables, type NewEvent } from '../../src/catch/event-tables.ts'
import {
  createInboxStore,
  destroyInbox,
  dropInbox,
  extendInbox,
  type InboxRow,
  insertInbox,
  resumeInbox,
  suspendInbox,
  unextendedInbox,
} from '../../src/catch/store.ts'
import { type Db, UnitRefused } from '../../src/db/db.ts'
import type { After } from '../support/folder.ts'
import { anEvent, anInbox } from '../support/inboxes.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const T = 1_800_000_000_000
const END = T + 1000

test('an inbox is what was sold, with nothing used, and not found by another id', async (t) => {
  const { sell, store } = await aStore(t)
  await sell('a')
  await sell('b', { ...LIMITS_OF_B, expiresAt: END + 5 })
  assert.deepEqual(await store.inbox('b'), {
    number: 2,
    public_id: 'b',
    plan_id: 'spark',
    created_at: T,
    expires_at: END + 5,
    owner_token_hash: new Uint8Array([1]),
    ingest_token_hash: new Uint8Array([2]),
    request_limit: 3,
    storage_limit_bytes: 30,
    max_bytes_per_request: 20,
    accepted_request_count: 0,
    stored_bytes: 0,
    suspended_at: null,
    destroyed_at: null,
    next_owner_token_hash: null,
    revision: 0,
    response: null,
    response_secret: null,
  })
  assert.equal(await store.inbox('c'), null)
})

test('an extension gives one inbox its time, requests and bytes, and counts once', async (t) => {
  const { run, sell, inboxes, extending } = await aStore(t)
  for (const name of ['a', 'b', 'c']) await sell(name)
  await run(await extending('b'))
  const rows = await inboxes()
  assert.deepEqual(
    rows.map((row) => [row.expires_at, row.request_limit, row.storage_limit_bytes]),
    [
      [END, 5, 100],
      [END + 500, 7, 130],
      [END, 5, 100],
    ],
  )
  // As it was read before.
  await assert.rejects(run(await extending('b')), UnitRefused)
  assert.deepEqual(await inboxes(), rows)
})

test('an inbox is extended until its end, to the millisecond', async (t) => {
  const { run, sell, extending } = await aStore(t)
  for (const name of ['a', 'b']) await sell(name)
  await assert.rejects(run(await extending('a', { now: END })), UnitRefused)
  await run(await extending('a', { now: END - 1 }))
})

test('an inbox that is destroyed, suspended or used up is not extended', async (t) => {
  const { run, sell, ingest, inboxes, extending, number } = await aStore(t)
  for (const name of ['destroyed', 'suspended', 'used', 'one left']) await sell(name)
  await run(destroyInbox(await number('destroyed'), T))
  await run(suspendInbox('suspended', T))
  await ingest('used', 5)
  await ingest('one left', 4)
  for (const name of ['destroyed', 'suspended', 'used']) {
    await assert.rejects(run(await extending(name)), UnitRefused, name)
  }
  await run(await extending('one left'))
  assert.deepEqual(
    (await inboxes()).map((row) => row.expires_at),
    [END, END + 500, END, END],
  )
})

test('an inbox is destroyed once, alone, and is then found no more', async (t) => {
  const { run, sell, store, inboxes, number } = await aStore(t)
  for (const name of ['a', 'b', 'c']) await sell(name)
  await run(destroyInbox(await number('b'), T + 1))
  await assert.rejects(run(destroyInbox(await number('b'), T + 2)), UnitRefused)
  await assert.rejects(run(destroyInbox(await number('none'), T + 2)), UnitRefused)
  assert.deepEqual(
    (await inboxes()).map((row) => row.destroyed_at),
    [null, T + 1, null],
  )
  assert.equal(await store.inbox('b'), null)
  assert.equal((await store.inbox('a'))?.public_id, 'a')
  assert.equal((await store.inbox('c'))?.public_id, 'c')
})

test('a destroyed inbox is neither suspended nor resumed', async (t) => {
  const { run, sell, number } = await aStore(t)
  for (const name of ['a', 'b']) await sell(name)
  await run(suspendInbox('b', T))
  for (const name of ['a', 'b']) await run(destroyInbox(await number(name), T))
  await assert.rejects(run(suspendInbox('a', T + 1)), UnitRefused)
  await assert.rejects(run(resumeInbox('b')), UnitRefused)
})

test('an inbox that was extended since it was read is not taken for one that is over', async (t) => {
  const { run, sell, inboxes, extending, tables } = await aStore(t)
  for (const name of ['a', 'b']) await sell(name)
  const read = await inboxes()
  const [a, b] = read
  assert.ok(a && b)
  await run(unextendedInbox(a))
  await run(await extending('a'))
  await assert.rejects(run(unextendedInbox(a)), UnitRefused)
  await run(unextendedInbox(b))
  await run(...dropInbox(a, tables.source))
  assert.deepEqual(
    (await inboxes()).map((row) => [row.public_id, row.expires_at]),
    [
      ['a', END + 500],
      ['b', END],
    ],
  )
})

test('a destroyed inbox is dropped also if it was extended since it was read, and alone', async (t) => {
  const { db, run, sell, inboxes, number, tables } = await aStore(t)
  for (const name of ['a', 'b', 'c', 'destroyed']) await sell(name)
  const [a] = await inboxes()
  assert.ok(a)
  await run(destroyInbox(await number('destroyed'), T))
  await run(...dropInbox({ number: await number('destroyed'), expires_at: 1 }, tables.source))
  await run(...dropInbox(a, tables.source))
  assert.deepEqual(await db.read('select public_id from catch_inbox order by public_id'), [
    { public_id: 'b' },
    { public_id: 'c' },
  ])
})

test('an inbox with events is not dropped, and one whose neighbour has some is', async (t) => {
  const { run, sell, ingest, inboxes, number, tables } = await aStore(t)
  for (const name of ['a', 'b', 'destroyed']) await sell(name)
  await ingest('a', 1)
  await ingest('destroyed', 1)
  await run(destroyInbox(await number('destroyed'), T))
  for (const row of await inboxes()) await run(...dropInbox(row, tables.source))
  assert.deepEqual(await names(inboxes()), ['a', 'destroyed'])
})

test('a purge takes what is destroyed, what is over with events, and what is over for long, so many at once', async (t) => {
  const { run, sell, ingest, store, number, tables } = await aStore(t)
  for (const name of ['destroyed', 'with events']) await sell(name)
  await sell('empty')
  await sell('lives', { expiresAt: END + 1 })
  await ingest('with events', 1)
  await ingest('lives', 1)
  await run(destroyInbox(await number('destroyed'), T))
  const purgeable = async (now: number, shownSince: number, limit = 9) =>
    (await names(store.purgeable({ now, shownSince }, tables.source, limit))).toSorted()
  assert.deepEqual(await purgeable(END - 1, END - 2), ['destroyed'])
  assert.deepEqual(await purgeable(END, END - 1), ['destroyed', 'with events'])
  assert.deepEqual(await purgeable(END, END), ['destroyed', 'empty', 'with events'])
  assert.equal((await purgeable(END + 1, END + 1, 3)).length, 3)
  assert.equal((await purgeable(END + 1, END + 1)).length, 4)
})

test('events are stored while their inbox lives, is not suspended, and has room for all of them', async (t) => {
  const { run, sell, ingest, used, number } = await aStore(t)
  for (const name of ['a', 'b', 'destroyed', 'suspended']) await sell(name)
  await sell('small', LIMITS_OF_B)
  await run(destroyInbox(await number('destroyed'), T))
  await run(suspendInbox('suspended', T))
  for (const name of ['destroyed', 'suspended', 'none']) {
    await assert.rejects(ingest(name, 1), UnitRefused, name)
  }
  // The last of them decides.
  await assert.rejects(ingest('a', [{ receivedAt: END }, { receivedAt: T }]), UnitRefused)
  await ingest('a', [{ receivedAt: T }, { receivedAt: END - 1 }])
  await assert.rejects(ingest('small', 4), UnitRefused)
  await assert.rejects(ingest('small', [{ keptBytes: 15 }, { keptBytes: 16 }]), UnitRefused)
  await ingest('small', [{ keptBytes: 10 }, { keptBytes: 5 }, { keptBytes: 15 }])
  await assert.rejects(ingest('small', [{ keptBytes: 0 }]), UnitRefused)
  assert.deepEqual(await used(), {
    a: '2 requests, 20 bytes',
    b: '0 requests, 0 bytes',
    destroyed: '0 requests, 0 bytes',
    suspended: '0 requests, 0 bytes',
    small: '3 requests, 30 bytes',
  })
})

test('an event is deleted by its sequence and the random part of its id, and gives its own bytes back', async (t) => {
  const { db, run, sell, ingest, used, number, tables } = await aStore(t)
  for (const name of ['a', 'b', 'c']) await sell(name)
  await ingest('a', [{ keptBytes: 1 }, { keptBytes: 2 }, { keptBytes: 3 }])
  await ingest('b', [{ keptBytes: 10 }, { keptBytes: 20 }, { keptBytes: 30 }])
  await ingest('c', [{ keptBytes: 4 }, { keptBytes: 5 }, { keptBytes: 6 }])
  await assert.rejects(
    run(...deleteEvent(tables, await number('b'), { sequence: 2, salt: 8 })),
    UnitRefused,
  )
  await assert.rejects(
    run(...deleteEvent(tables, await number('b'), { sequence: 4, salt: 7 })),
    UnitRefused,
  )
  await run(...deleteEvent(tables, await number('b'), { sequence: 2, salt: 7 }))
  assert.deepEqual(await used(), {
    a: '3 requests, 6 bytes',
    b: '3 requests, 40 bytes',
    c: '3 requests, 15 bytes',
  })
  assert.equal(await events(db), 'a1 a2 a3 b1 b3 c1 c2 c3')
  await assert.rejects(
    run(...deleteEvent(tables, await number('b'), { sequence: 2, salt: 7 })),
    UnitRefused,
  )
})

test('a purge of events takes those of its inbox, the oldest first, at least as many as it may while there are more', async (t) => {
  const { db, run, sell, ingest, number, tables } = await aStore(t)
  for (const name of ['a', 'b']) await sell(name)
  for (const name of ['a', 'b', 'a', 'b']) await ingest(name, 2)
  assert.equal((await run(...tables.purge(await number('b'), 3))).all.length, 3)
  assert.equal(await events(db), 'a1 a2 a3 a4 b4')
  await tables.tidy()
  assert.equal((await run(...tables.purge(await number('a'), 3))).all.length, 3)
  assert.equal(await events(db), 'a4 b4')
  assert.equal((await run(...tables.purge(await number('b'), 3))).all.length, 1)
  assert.equal(await events(db), 'a4')
})

const LIMITS_OF_B = { requestLimit: 3, storageLimitBytes: 30, maxBytesPerRequest: 20 }

async function events(db: Db): Promise<string> {
  const rows = await db.read(
    'select public_id, sequence from catch_event join catch_inbox on number = inbox order by 1, 2',
  )
  return rows.map(({ public_id, sequence }) => `${public_id}${sequence}`).join(' ')
}

const names = async (rows: Promise<InboxRow[]>): Promise<string[]> =>
  (await rows).map(({ public_id }) => public_id)

type Sold = Partial<Parameters<typeof insertInbox>[0]>

async function aStore(t: After) {
  const db = await aDatabase(t)
  const tables = eventTables(db)
  /** Also of one that is destroyed. */
  const number = async (publicId: string): Promise<number> => {
    const [row] = await db.read<{ number: number }>(
      'select number from catch_inbox where public_id = $1',
      publicId,
    )
    return row?.number ?? 0
  }
  const run = (...statements: Parameters<typeof unit>) => db.write(unit(...statements))
  const inboxes = () =>
    db.read<InboxRow>(
      'select * from catch_inbox join catch_inbox_use using (number) order by public_id',
    )
  return {
    db,
    run,
    inboxes,
    tables,
    store: createInboxStore(db),
    number,
    async extending(publicId: string, { now = T } = {}) {
      return extendInbox({
        number: await number(publicId),
        endsAt: END,
        expiresAt: END + 500,
        moreRequests: 2,
        moreBytes: 30,
        now,
      })
    },
    sell: (publicId: string, some: Sold = {}) =>
      run(
        ...insertInbox(
          anInbox({
            publicId,
            createdAt: T,
            expiresAt: END,
            requestLimit: 5,
            storageLimitBytes: 100,
            ownerTokenHash: new Uint8Array([1]),
            ingestTokenHash: new Uint8Array([2]),
            maxBytesPerRequest: 50,
            ...some,
          }),
        ),
      ),
    ingest: async (publicId: string, events: number | Partial<NewEvent>[]) =>
      run(
        ...tables.insert(
          { number: await number(publicId), revision: 0 },
          (typeof events === 'number' ? Array.from({ length: events }, () => ({})) : events).map(
            (event) => anEvent({ receivedAt: T, ...event }),
          ),
        ),
      ),
    /** What each inbox has used. */
    async used() {
      return Object.fromEntries(
        (await inboxes()).map((row) => [
          row.public_id,
          `${row.accepted_request_count} requests, ${row.stored_bytes} bytes`,
        ]),
      )
    },
  }
}
