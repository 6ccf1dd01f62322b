/** What the statements of the outbox do to destinations, and to no others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  activate,
  type DestinationRow,
  insertAlert,
  keepDestination,
  releaseDestination,
} from '../../src/alerts/store.ts'
import { UnitRefused } from '../../src/db/db.ts'
import { anAlert, aStore, claim, destination, END, MINUTE, NOW } from '../support/outbox.ts'

test('a place that is taken refuses another destination', async (t) => {
  const { run, add } = await aStore(t)
  await add('a 0')
  await assert.rejects(run(destination('another', 'a')), UnitRefused)
})

test('a destination is kept with its secret, and no other is changed', async (t) => {
  const { run, add, row } = await aStore(t)
  await add('a 0', 'a 1')
  const [before, other] = [await row('a 0'), await row('a 1')]
  await run(keepDestination('a 0', true))
  assert.deepEqual(await row('a 0'), { ...before, is_private: 1 })
  assert.deepEqual(await row('a 1'), other)
  await assert.rejects(run(keepDestination('a 9', true)), UnitRefused)
})

test('a test that was answered makes active what is untested, and only that', async (t) => {
  const { run, add, row } = await aStore(t)
  await add.untested('a 0', 'a 1')
  await run(activate('a 0'))
  assert.equal((await row('a 1')).state, 'untested')
  await run(...insertAlert('a', 'one', anAlert()))
  const [held] = (await run(claim('a 0'))).all
  await run(releaseDestination(held as DestinationRow, { ...END, state: 'gone' }))
  await run(activate('a 0'))
  assert.equal((await row('a 0')).state, 'gone')
})

test('a destination is held alone, when something is due', async (t) => {
  const { run, add, row } = await aStore(t)
  await add('a 0', 'a 1', 'b 0')
  assert.deepEqual((await run(claim('a 0'))).all, [], 'nothing is due')
  await run(...insertAlert('a', 'one', anAlert()))
  assert.deepEqual((await run(claim('a 0', NOW - 1))).all, [], 'it is due later')
  assert.equal((await run(claim('a 0'))).all.length, 1)
  assert.equal((await row('a 1')).due_at, NOW)
  assert.equal((await row('a 0')).due_at, NOW + MINUTE)
})

test('one instance at a time has a destination, and the next one once the claim is over', async (t) => {
  const { run, add } = await aStore(t)
  await add('a 0')
  await run(...insertAlert('a', 'one', anAlert()))
  const [first] = (await run(claim('a 0'))).all
  assert.equal((await run(claim('a 0', NOW + MINUTE - 1))).all.length, 0)
  assert.equal((await run(claim('a 0', NOW + MINUTE))).all.length, 1)
  const late = { ...END, done_position: 1 }
  await assert.rejects(run(releaseDestination(first as DestinationRow, late)), UnitRefused)
})

test('the end of an attempt notes all of it in one destination', async (t) => {
  const { run, add, row } = await aStore(t)
  await add('a 0', 'a 1')
  await run(...insertAlert('a', 'one', anAlert()), ...insertAlert('a', 'two', anAlert()))
  const [held] = (await run(claim('a 0'), claim('a 1'))).all
  const next: Omit<Parameters<typeof releaseDestination>[1], 'nextAt'> = {
    done_position: 1,
    attempts: 3,
    not_before: NOW + 4,
    day_started_at: NOW + 5,
    day_count: 6,
    state: 'active',
  }
  await run(releaseDestination(held as DestinationRow, { ...next, nextAt: NOW + 7 }))
  const after = await row('a 0')
  assert.deepEqual(after, { ...after, ...next, due_at: NOW + 7 })
  assert.equal((await row('a 1')).due_at, NOW + MINUTE)
})

test('nothing is due of a destination that is gone, or that was told everything', async (t) => {
  const { run, add, dueAt } = await aStore(t)
  await add('a 0', 'a 1')
  await run(...insertAlert('a', 'one', anAlert()))
  const [gone, done] = (await run(claim('a 0'), claim('a 1'))).all as DestinationRow[]
  assert.ok(gone && done)
  await run(releaseDestination(gone, { ...END, state: 'gone' }))
  await run(releaseDestination(done, { ...END, done_position: 1 }))
  assert.deepEqual(await dueAt(), { 'a 0': null, 'a 1': null })
})

test('the turn goes to those who are longest due, but to none that is held, tried again or at a busy host', async (t) => {
  const { run, add, store } = await aStore(t)
  await add('a 0', 'b 0', 'c 0', 'd 0', 'e 0')
  for (const [owner, occurredAt] of Object.entries({ a: 1, b: 0, c: 1, d: 2, e: 3 })) {
    await run(...insertAlert(owner, owner, { ...anAlert(), occurredAt: NOW + occurredAt }))
  }
  const due = async (some: Partial<Parameters<typeof store.due>[1]> = {}, now = NOW + 2) => {
    const all = { exceptHosts: [], exceptRepeats: false, limit: 9 }
    return (await store.due(now, { ...all, ...some })).map(({ owner_id }) => owner_id).join('')
  }
  assert.equal(await due(), 'bacd')
  assert.equal(await due({ limit: 2 }), 'ba')
  assert.equal(await due({ exceptHosts: ['host of a', 'host of c'] }), 'bd')
  const [held] = (await run(claim('b 0', NOW + 2, NOW + 2 + MINUTE))).all
  assert.equal(await due(), 'acd')
  assert.equal(await due({}, NOW + 2 + MINUTE - 1), 'acde')
  assert.equal(await due({}, NOW + 2 + MINUTE), 'acdeb', 'its claim is over')
  await run(releaseDestination(held as DestinationRow, { ...END, attempts: 1, nextAt: NOW }))
  assert.equal(await due({ exceptRepeats: true }), 'acd')
  assert.equal(await due({ exceptRepeats: false }), 'bacd')
})

test('destinations are listed by place', async (t) => {
  const { add, store } = await aStore(t)
  await add('a 2', 'a 0', 'b 0', 'a 1')
  const ids = (rows: DestinationRow[]) => rows.map(({ destination_id }) => destination_id)
  assert.deepEqual(ids(await store.ofOwner('a')), ['a 0', 'a 1', 'a 2'])
})
