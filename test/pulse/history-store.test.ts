/** The history of one monitor beside that of another one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createHistoryStore,
  deleteHistories,
  deleteHistory,
  forgetHistory,
  type HistoryRows,
  type LateSpell,
  storeHistory,
} from '../../src/pulse/history-store.ts'
import type { After } from '../support/folder.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const NOTHING: HistoryRows = { spells: [], chunk: null, run: null }

test('the end of a spell completes what its beginning stored, and nothing else of it', async (t) => {
  const { db, add } = await aStore(t)
  const begun: LateSpell = {
    ...{ beganAt: 10, cause: 'silence', endedAt: null, endedBy: null, lateBeforeMs: 5 },
  }
  await add('a', { spells: [begun] })
  await add('b', { spells: [begun] })
  await add('a', { spells: [{ ...begun, endedAt: 20, endedBy: 'ping', lateBeforeMs: 99 }] })
  assert.deepEqual(
    await db.read(
      'select public_id, ended_at, ended_by, late_before_ms from pulse_late_spell order by public_id',
    ),
    [
      { public_id: 'a', ended_at: 20, ended_by: 'ping', late_before_ms: 5 },
      { public_id: 'b', ended_at: null, ended_by: null, late_before_ms: 5 },
    ],
  )
})

test('chunks and runs are read of one monitor, from the first to the last, both included', async (t) => {
  const { store, add } = await aStore(t)
  for (const publicId of ['a', 'b']) {
    for (const n of [1, 2, 3, 4]) {
      const ended = {
        rid: `${publicId}${n}`,
        startedAt: n,
        endedAt: n,
        hasFailed: n === 3,
        exitCode: n,
      }
      await add(publicId, {
        chunk: { position: n, times: `${publicId}${n}` },
        run: { pingNumber: n, ended },
      })
    }
  }
  const between = { from: 2, to: 3 }
  const chunks = await store.chunks('a', between)
  assert.deepEqual(chunks.map(({ times }) => times).toSorted(), ['a2', 'a3'])
  const runs = await store.runs('a', between)
  assert.deepEqual(
    runs.toSorted((one, other) => one.ping_number - other.ping_number),
    [
      { ping_number: 2, rid: 'a2', started_at: 2, has_failed: 0, exit_code: 2 },
      { ping_number: 3, rid: 'a3', started_at: 3, has_failed: 1, exit_code: 3 },
    ],
  )
})

test('the newest spells of a monitor are read that have ended and began before a time', async (t) => {
  const { store, add } = await aStore(t)
  await add('b', { spells: [aSpell(11, 12)] })
  for (const one of [aSpell(10, 12), aSpell(20, 22), aSpell(30, 32)])
    await add('a', { spells: [one] })
  await add('a', { spells: [{ ...aSpell(25, 0), endedAt: null, endedBy: null }] })
  const began = async (before: number, most = 9) =>
    (await store.spells('a', { before, most })).map(({ began_at }) => began_at)
  assert.deepEqual(await began(31), [30, 20, 10])
  assert.deepEqual(await began(30), [20, 10])
  assert.deepEqual(await began(31, 2), [30, 20])
})

test('how long a monitor was late until a time counts its own spells that have ended, and the part of the last', async (t) => {
  const { store, add } = await aStore(t)
  await add('b', { spells: [{ ...aSpell(15, 19), lateBeforeMs: 77 }] })
  await add('a', { spells: [aSpell(10, 14)] })
  await add('a', { spells: [{ ...aSpell(20, 26), lateBeforeMs: 4 }] })
  await add('a', { spells: [{ ...aSpell(40, 0), lateBeforeMs: 10, endedAt: null, endedBy: null }] })
  const times = [9, 10, 12, 18, 20, 23, 30, 50]
  const until = await store.lateUntil('a', times)
  assert.deepEqual(
    times.map((time) => until.get(time)),
    [0, 0, 2, 4, 4, 7, 10, 10],
  )
})

test('as many times are looked up as are asked for', async (t) => {
  const { store, add } = await aStore(t)
  await add('a', { spells: [aSpell(0, 1_000)] })
  for (const count of [0, 1, 32, 33, 65]) {
    const times = Array.from({ length: count }, (_, i) => i + 1)
    const until = await store.lateUntil('a', times)
    assert.deepEqual(
      [...until.keys()].toSorted((a, b) => a - b),
      times,
    )
    for (const time of times) assert.equal(until.get(time), time)
  }
})

test('the history of a monitor that is gone is deleted, and that of others stays', async (t) => {
  const { db, run, add } = await aStore(t)
  for (const publicId of ['a', 'b', 'c']) {
    const ended = { rid: null, startedAt: null, endedAt: 2, hasFailed: false, exitCode: null }
    await add(publicId, {
      spells: [aSpell(1, 2)],
      chunk: { position: 0, times: 'x' },
      run: { pingNumber: 1, ended },
    })
  }
  const left = async () => {
    const tables = ['pulse_late_spell', 'pulse_ping_chunk', 'pulse_run', 'pulse_gone']
    const rows = await Promise.all(
      tables.map((table) => db.read(`select public_id from ${table} order by public_id`)),
    )
    return rows.map((some) => some.map(({ public_id }) => public_id).join(''))
  }
  await run(...forgetHistory(['a', 'c']), ...forgetHistory(['a']))
  assert.deepEqual(await left(), ['abc', 'abc', 'abc', 'ac'])
  await deleteHistory(db, 'a')
  assert.deepEqual(await left(), ['bc', 'bc', 'bc', 'c'])
  await deleteHistories(db)
  assert.deepEqual(await left(), ['b', 'b', 'b', ''])
})

test('the histories of more monitors than are read together are deleted', async (t) => {
  const { db, run } = await aStore(t)
  await run(...forgetHistory(Array.from({ length: 201 }, (_, i) => `monitor ${i}`)))
  await deleteHistories(db)
  assert.deepEqual(await db.read('select public_id from pulse_gone'), [])
})

const aSpell = (beganAt: number, endedAt: number): LateSpell => ({
  beganAt,
  cause: 'silence',
  endedAt,
  endedBy: 'ping',
  lateBeforeMs: 0,
})
async function aStore(t: After) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
  const run = (...statements: Parameters<typeof unit>) => db.write(unit(...statements))
  return {
    ...{ db, run, store: createHistoryStore(db) },
    add: (publicId: string, some: Partial<HistoryRows>) =>
      run(...storeHistory(publicId, { ...NOTHING, ...some })),
  }
}
