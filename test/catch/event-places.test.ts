import assert from 'node:assert/strict'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import {
  createEventStore,
  deleteEvent,
  type EventFilter,
  type EventStore,
} from '../../src/catch/event-store.ts'
import { createPlaces, type EventTables } from '../../src/catch/event-tables.ts'
import { insertInbox } from '../../src/catch/store.ts'
import { attempt, type Db, type Unit } from '../../src/db/db.ts'
import { openStore } from '../../src/db/open.ts'
import { temporaryFolder } from '../support/folder.ts'
import { anEvent, anInbox, numberOf } from '../support/inboxes.ts'
import { unit } from '../support/unit.ts'

const INBOXES = ['a', 'b', 'c']
const METHODS = ['GET', 'POST']
const NOW = 1_700_000_000_000
const DAY = 24 * 60 * 60 * 1000
const INBOX = anInbox({
  requestLimit: 1e6,
  storageLimitBytes: 1e9,
  createdAt: NOW,
  expiresAt: NOW + DAY,
})

type Stored = { sequence: number; method: string }
type Model = Map<string, { stored: Stored[]; last: number }>

const someInbox = fc.constantFrom(...INBOXES)
const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('store' as const),
        inbox: someInbox,
        methods: fc.array(fc.constantFrom(...METHODS), { minLength: 1, maxLength: 4 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('sort in' as const) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('delete' as const),
        inbox: someInbox,
        sequence: fc.integer({ min: 1, max: 20 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('purge' as const),
        inbox: someInbox,
        max: fc.integer({ min: 1, max: 5 }),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('read' as const),
        inbox: someInbox,
        from: fc.integer({ min: 0, max: 20 }),
        limit: fc.integer({ min: 1, max: 6 }),
        order: fc.constantFrom('newest' as const, 'oldest' as const),
        method: fc.constantFrom(null, ...METHODS),
      }),
    },
  ),
  { minLength: 20, maxLength: 80 },
)

suite('events on SQLite', () => {
  test('every read finds an event exactly once, whether it is sorted in or recent', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const db = await openStore({ kind: 'sqlite', file })
    t.after(() => db.close())
    await fc.assert(
      fc.asyncProperty(
        steps,
        fc.integer({ min: 2, max: 12 }),
        fc.integer({ min: 1, max: 6 }),
        async (all, between, mostOfInbox) => {
          const model = await freshModel(db)
          const writes = createPlaces(db, { between, mostOfInbox })
          for (const step of all) await take(step, { db, model, writes })
          for (const inbox of INBOXES) await compareAll(db, model, inbox)
          await checkPlaces(db)
        },
      ),
      { numRuns: 60 },
    )
  })

  test('events are sorted in once there are many, and those of a busy inbox at once', async (t) => {
    const { db, places } = await aStore(t)
    const writes = createPlaces(db, { between: 6, mostOfInbox: 3 })
    for (const inbox of ['a', 'b', 'a', 'a', 'a'])
      await db.write(storing(writes, await numberOf(db, inbox), ['GET']))
    assert.deepEqual(await places(), { recent: ['a1', 'b1', 'a2', 'a3'], sorted: ['a4'] })
    // With the sixth, all that was recent. Then `a` is no longer a busy one.
    for (const inbox of ['b', 'c', 'c', 'a'])
      await db.write(storing(writes, await numberOf(db, inbox), ['GET']))
    assert.deepEqual(await places(), {
      recent: ['b2', 'c1', 'c2', 'a5'],
      sorted: ['a1', 'a2', 'a3', 'a4', 'b1'],
    })
    await writes.tidy()
    assert.deepEqual((await places()).recent, [])
    assert.equal((await places()).sorted.length, 9)
  })

  test('events are sorted in without a flush of their own, and nothing is written where none are', async (t) => {
    const { db } = await aStore(t)
    const written: Unit[] = []
    const write: Db['write'] = (one) => {
      written.push(one)
      return db.write(one)
    }
    const writes = createPlaces({ ...db, write })
    await writes.tidy()
    assert.deepEqual(written, [])
    await db.write(storing(writes, await numberOf(db, 'a'), ['GET']))
    await writes.tidy()
    assert.deepEqual(
      written.map(({ durability }) => durability),
      ['deferred'],
    )
    await writes.tidy()
    assert.equal(written.length, 1)
  })
})

async function aStore(t: TestContext) {
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const db = await openStore({ kind: 'sqlite', file })
  t.after(() => db.close())
  for (const inbox of INBOXES) await db.write(unit(...insertInbox({ ...INBOX, publicId: inbox })))
  const named = async (table: string): Promise<string[]> => {
    const rows = await db.read(
      `select public_id || sequence as name from ${table}
       join catch_inbox on inbox = number`,
    )
    return rows.map(({ name }) => String(name))
  }
  return {
    db,
    file,
    places: async () => ({
      recent: await named('catch_event_recent'),
      sorted: (await named('catch_event_place')).sort(),
    }),
  }
}

/** Empty inboxes, in the store and in the model. */
async function freshModel(db: Db): Promise<Model> {
  const model: Model = new Map()
  for (const table of [
    'catch_event',
    'catch_event_place',
    'catch_event_recent',
    'catch_inbox_use',
    'catch_inbox',
  ]) {
    await db.write(unit({ text: `delete from ${table}`, values: [] }))
  }
  for (const inbox of INBOXES) await db.write(unit(...insertInbox({ ...INBOX, publicId: inbox })))
  for (const inbox of INBOXES) model.set(inbox, { stored: [], last: 0 })
  return model
}

async function take(
  step: typeof steps extends fc.Arbitrary<(infer Step)[]> ? Step : never,
  { db, model, writes }: { db: Db; model: Model; writes: EventTables },
): Promise<void> {
  if (step.do === 'sort in') return writes.tidy()
  const of = model.get(step.inbox)
  assert.ok(of)
  const number = await numberOf(db, step.inbox)
  switch (step.do) {
    case 'store':
      await db.write(storing(writes, number, step.methods))
      for (const method of step.methods) of.stored.push({ sequence: ++of.last, method })
      return
    case 'delete': {
      const isThere = of.stored.some(({ sequence }) => sequence === step.sequence)
      const done = await attempt(
        db.write(unit(...deleteEvent(writes, number, { sequence: step.sequence, salt: 7 }))),
      )
      assert.equal('rows' in done, isThere)
      of.stored = of.stored.filter(({ sequence }) => sequence !== step.sequence)
      return
    }
    case 'purge': {
      const { all } = await db.write(unit(...writes.purge(number, step.max)))
      const gone = new Set(all?.map(({ sequence }) => sequence))
      assert.ok(gone.size >= Math.min(step.max, of.stored.length))
      assert.equal(gone.size, all?.length)
      for (const sequence of gone) assert.ok(of.stored.some((one) => one.sequence === sequence))
      of.stored = of.stored.filter(({ sequence }) => !gone.has(sequence))
      return
    }
    case 'read':
      return compare(createEventStore(db, writes), of.stored, { ...step, inbox: number })
  }
}

async function compare(
  store: EventStore,
  stored: Stored[],
  step: {
    inbox: number
    from: number
    limit: number
    order: 'newest' | 'oldest'
    method: string | null
  },
): Promise<void> {
  const { inbox, from, limit, order, method } = step
  const filter: EventFilter = { order, from, equal: method === null ? [] : [['method', method]] }
  const beyond = stored
    .filter(({ sequence }) => (order === 'newest' ? sequence < from : sequence > from))
    .sort((a, b) => (order === 'newest' ? b.sequence - a.sequence : a.sequence - b.sequence))
  const expected = beyond.filter((one) => method === null || one.method === method)
  const sequences = expected.map(({ sequence }) => sequence)

  const first = await store.first(inbox, filter, { limit, bytes: 1e6 })
  assert.deepEqual(
    first.map(({ sequence }) => sequence),
    sequences.slice(0, limit),
  )
  const window = await store.window(inbox, filter, limit)
  assert.deepEqual(
    window.map(({ sequence, matches }) => [sequence, Boolean(matches)]),
    beyond.slice(0, limit).map((one) => [one.sequence, method === null || one.method === method]),
  )

  const some = await store.json(inbox, { sequences: [...sequences, 99], order })
  assert.deepEqual(
    some.map(({ sequence }) => sequence),
    sequences,
  )
}

async function compareAll(db: Db, model: Model, inbox: string): Promise<void> {
  const of = model.get(inbox)
  assert.ok(of)
  const rows = await createEventStore(db, createPlaces(db)).first(
    await numberOf(db, inbox),
    { order: 'oldest', from: 0, equal: [] },
    { limit: 500, bytes: 1e7 },
  )
  assert.deepEqual(
    rows.map(({ sequence }) => sequence),
    of.stored.map(({ sequence }) => sequence).sort((a, b) => a - b),
  )
}

/** Each row has exactly one place. */
async function checkPlaces(db: Db): Promise<void> {
  const rows = await db.read(`select id, (select count(*) from catch_event_recent r
        where r.id = e.id and r.inbox = e.inbox and r.sequence = e.sequence)
      + (select count(*) from catch_event_place p
        where p.id = e.id and p.inbox = e.inbox and p.sequence = e.sequence) as places
    from catch_event e`)
  assert.ok(rows.every(({ places }) => places === 1))
  const [count] = await db.read(`select (select count(*) from catch_event_recent)
    + (select count(*) from catch_event_place) as n`)
  assert.equal(count?.n, rows.length)
}

const storing = (writes: EventTables, inbox: number, methods: string[]) =>
  unit(
    ...writes.insert(
      { number: inbox, revision: 0 },
      methods.map((method) => anEvent({ method, receivedAt: NOW, body: new Uint8Array(10) })),
    ),
  )
