/** What an inbox refused is counted for it alone, and reaches the store in turns. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRefusals } from '../../src/catch/refusals.ts'
import { destroyInbox, insertInbox } from '../../src/catch/store.ts'
import { type Db, StoreAway } from '../../src/db/db.ts'
import type { After } from '../support/folder.ts'
import { anInbox, numberOf } from '../support/inboxes.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const T = Date.UTC(2026, 0, 2)
const NOTHING = { total: 0, reasons: [] }

test('refusals are those of one inbox, each reason with its first and last time, the most frequent first', async (t) => {
  const { sell, refusals, clock } = await aStore(t)
  for (const name of ['a', 'b', 'c']) await sell(name)
  const mine = refusals()
  mine.count('a', 'expired')
  mine.count('b', 'too_large')
  for (const seconds of [5, 3, 9]) {
    clock.at = T + seconds * 1000
    mine.count('b', 'exhausted')
  }
  mine.count('c', 'too_large')
  assert.deepEqual(await mine.of('b'), {
    total: 4,
    reasons: [
      { reason: 'exhausted', count: 3, ...between(3, 9) },
      { reason: 'too_large', count: 1, ...between(0, 0) },
    ],
  })
  assert.equal((await mine.of('a')).total, 1)
})

test('reasons with the same count are told in the order of their names', async (t) => {
  const { sell, refusals } = await aStore(t)
  await sell('a')
  const mine = refusals()
  for (const reason of ['too_large', 'exhausted', 'suspended'] as const) mine.count('a', reason)
  const { reasons } = await mine.of('a')
  assert.deepEqual(
    reasons.map(({ reason }) => reason),
    ['exhausted', 'suspended', 'too_large'],
  )
})

test('what is counted later adds to what is stored, which keeps its earliest and its latest time', async (t) => {
  const { sell, refusals, clock } = await aStore(t)
  await sell('a')
  const mine = refusals()
  const at = async (seconds: number) => {
    clock.at = T + seconds * 1000
    mine.count('a', 'exhausted')
    return (await mine.of('a')).reasons
  }
  await at(5)
  // The clock of another instance may be behind.
  assert.deepEqual(await at(3), [{ reason: 'exhausted', count: 2, ...between(3, 5) }])
  assert.deepEqual(await at(4), [{ reason: 'exhausted', count: 3, ...between(3, 5) }])
  assert.deepEqual(await at(8), [{ reason: 'exhausted', count: 4, ...between(3, 8) }])
})

test('no refusal is stored of an inbox that is destroyed or unknown', async (t) => {
  const { db, sell, refusals, stored } = await aStore(t)
  for (const name of ['a', 'destroyed']) await sell(name)
  await db.write(unit(destroyInbox(await numberOf(db, 'destroyed'), T)))
  const mine = refusals()
  for (const name of ['a', 'destroyed', 'unknown']) mine.count(name, 'exhausted')
  assert.deepEqual(await mine.of('destroyed'), NOTHING)
  assert.deepEqual(await stored(), ['a'])
})

test('a purge deletes the counts of inboxes that are gone, no others, and writes only if there are some', async (t) => {
  const { db, sell, refusals, stored, writes } = await aStore(t)
  for (const name of ['a', 'b', 'c']) await sell(name)
  const mine = refusals()
  assert.deepEqual([await mine.of('a'), writes.length], [NOTHING, 0])
  for (const name of ['a', 'b', 'c']) mine.count(name, 'exhausted')
  await mine.of('a')
  await db.write(unit({ text: `delete from catch_inbox where public_id = 'b'`, values: [] }))
  const before = writes.length
  await mine.purge()
  assert.deepEqual(await stored(), ['a', 'c'])
  assert.equal(writes.length, before + 1)
  await mine.purge()
  assert.equal(writes.length, before + 1)
})

test('counts are written two seconds after the first of them, all in one turn, and none without', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { refusals, clock, writes } = withoutStore()
  const mine = refusals()
  mine.count('a', 'exhausted')
  clock.at += 1_500
  t.mock.timers.tick(1_500)
  mine.count('b', 'exhausted')
  t.mock.timers.tick(499)
  await settled()
  assert.deepEqual(writes, [])
  t.mock.timers.tick(1)
  await settled()
  assert.deepEqual(writes, [['a', 'b']])
  t.mock.timers.tick(9_999)
  await settled()
  assert.equal(writes.length, 1)
  mine.count('c', 'exhausted')
  t.mock.timers.tick(2_000)
  await settled()
  assert.deepEqual(writes, [['a', 'b'], ['c']])
})

test('the counts of a turn are written in the order of their primary key, a hundred in one unit', async () => {
  const { refusals, writes } = withoutStore()
  const mine = refusals()
  const names = Array.from({ length: 201 }, (_, i) => `catch_${String(i).padStart(3, '0')}`)
  for (const name of names.toReversed()) mine.count(name, 'exhausted')
  mine.count('catch_000', 'expired')
  mine.count('catch_000', 'too_large')
  await mine.close()
  assert.deepEqual(
    writes.map(({ length }) => length),
    [100, 100, 3],
  )
  assert.deepEqual(writes.flat(), [
    ...['catch_000', 'catch_000 expired', 'catch_000 too_large'],
    ...names.slice(1),
  ])
})

test('what a unit could not write is written by a later turn with what came since, and nothing twice', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { refusals, writes, counts, state } = withoutStore()
  const mine = refusals()
  const names = Array.from({ length: 150 }, (_, i) => `catch_${String(i).padStart(3, '0')}`)
  for (const name of names) mine.count(name, 'exhausted')
  state.failsAt = 1
  t.mock.timers.tick(2_000)
  await settled()
  assert.deepEqual(writes, [names.slice(0, 100)])
  mine.count('catch_100', 'exhausted')
  mine.count('catch_000', 'exhausted')
  t.mock.timers.tick(2_000)
  await settled()
  assert.deepEqual(writes.slice(1), [['catch_000', ...names.slice(100)]])
  assert.equal(counts.get('catch_100'), 2)
  assert.equal(counts.get('catch_000'), 2)
  assert.equal(counts.get('catch_149'), 1)
})

test('ten thousand counts wait for the store at most, and those that wait go on counting', async () => {
  const { refusals, counts } = withoutStore()
  const mine = refusals()
  for (let i = 0; i < 10_001; i++) mine.count(`catch_${i}`, 'exhausted')
  mine.count('catch_0', 'exhausted')
  await mine.close()
  assert.deepEqual(
    [counts.size, counts.get('catch_0'), counts.get('catch_9999'), counts.get('catch_10000')],
    [10_000, 2, 1, undefined],
  )
})

test('the end writes what waits, after the turn under way, and leaves no timer', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { refusals, writes, state } = withoutStore()
  const mine = refusals()
  const gate = Promise.withResolvers<void>()
  state.until = gate.promise
  mine.count('a', 'exhausted')
  t.mock.timers.tick(2_000)
  await settled()
  mine.count('b', 'exhausted')
  const closed = mine.close()
  await settled()
  assert.deepEqual(writes, [])
  gate.resolve()
  await closed
  assert.deepEqual(writes, [['a'], ['b']])
  state.failsAt = 2
  mine.count('c', 'exhausted')
  await mine.close()
  t.mock.timers.tick(9_999)
  await settled()
  // It failed, and nobody tries again.
  assert.equal(writes.length, 2)
})

/** From so many seconds on to so many. */
const between = (first: number, last: number) => ({
  firstAt: new Date(T + first * 1000).toISOString(),
  lastAt: new Date(T + last * 1000).toISOString(),
})

/** Promises that wait for no timer. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

async function aStore(t: After) {
  const store = await aDatabase(t)
  const clock = { at: T, now: () => clock.at }
  const writes: string[] = []
  const db: Db = {
    ...store,
    write(one) {
      writes.push(one.lockKey)
      return store.write(one)
    },
  }
  return {
    db: store,
    clock,
    writes,
    refusals: () => createRefusals({ db, clock }),
    sell: (publicId: string) =>
      store.write(unit(...insertInbox(anInbox({ publicId, createdAt: T, expiresAt: T + 1 })))),
    async stored() {
      const rows = await store.read('select public_id from catch_refusal order by public_id')
      return rows.map(({ public_id }) => public_id)
    },
  }
}

/** A store that only notes which counts each unit writes: the inbox, and the reason unless it is exhausted. */
function withoutStore() {
  const clock = { at: T, now: () => clock.at }
  const writes: string[][] = []
  const counts = new Map<string, number>()
  const state: { failsAt: number | null; until: Promise<void> } = {
    failsAt: null,
    until: Promise.resolve(),
  }
  const db = {
    async write({ statements }: Parameters<Db['write']>[0]) {
      await state.until
      if (state.failsAt === writes.length) {
        state.failsAt = null
        throw new StoreAway('gone')
      }
      const rows = Object.values(statements).flat()
      const names = rows.map(({ values: [inbox, reason, count] }) => {
        const name = reason === 'exhausted' ? String(inbox) : `${inbox} ${reason}`
        counts.set(name, (counts.get(name) ?? 0) + Number(count))
        return name
      })
      writes.push(names)
      return {}
    },
  } as unknown as Db
  return { clock, writes, counts, state, refusals: () => createRefusals({ db, clock }) }
}
