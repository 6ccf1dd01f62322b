/** What the statements of the outbox do to alerts, and to no others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  activate,
  dropAlerts,
  dropDestination,
  dropOwners,
  dropWaiting,
  insertAlert,
  MAX_WAITING,
  noteAttempt,
  purgeAlerts,
} from '../../src/alerts/store.ts'
import { UnitRefused } from '../../src/db/db.ts'
import { anAlert, aStore, LATER, MINUTE, NOW } from '../support/outbox.ts'

test('what happens to an owner is told to all of its tested destinations, and to nobody else', async (t) => {
  const { run, add, told, dueAt } = await aStore(t)
  await add('a 0', 'a 1', 'b 0')
  await add.untested('a 2')
  await run(...insertAlert('a', 'first', anAlert()))
  assert.deepEqual(await told(), ['a 0: first', 'a 1: first'])
  assert.deepEqual(await dueAt(), { 'a 0': NOW, 'a 1': NOW, 'a 2': null, 'b 0': null })
})

test('a destination that is tested beside the alert is told of the next one, not of this', async (t) => {
  const { run, add, told } = await aStore(t)
  await add('a 0')
  await add.untested('a 1')
  const [due = assert.fail(), ...rest] = insertAlert('a', 'first', anAlert())
  await run(due, activate('a 1'), ...rest)
  assert.deepEqual(await told(), ['a 0: first'])
})

test('an alert that is told later is due later, unless another one is due already', async (t) => {
  const { run, add, dueAt } = await aStore(t)
  await add('a 0', 'b 0')
  await run(...insertAlert('a', 'late', { ...anAlert(), notBefore: NOW + MINUTE }))
  assert.equal((await dueAt())['a 0'], NOW + MINUTE)
  await run(...insertAlert('b', 'now', anAlert()))
  await run(...insertAlert('b', 'late', { ...anAlert(), notBefore: NOW + MINUTE }))
  assert.equal((await dueAt())['b 0'], NOW)
})

test('the oldest that waits gives way to the newest: not what has ended, and nothing of another owner', async (t) => {
  const { run, add, told, alerts } = await aStore(t)
  await add('a 0', 'a 1', 'b 0')
  await run(...insertAlert('b', 'theirs', anAlert()), ...insertAlert('a', 'ended', anAlert()))
  const [ended = assert.fail()] = await alerts('a 0')
  await run(noteAttempt(ended, { at: NOW, outcome: '2xx', doneAt: NOW }))
  for (let i = 1; i <= MAX_WAITING + 1; i++) await run(...insertAlert('a', `${i}`, anAlert()))
  const newest = Array.from({ length: MAX_WAITING }, (_, i) => `${i + 2}`)
  assert.deepEqual(
    (await told()).toSorted(),
    [
      ...['a 0', 'a 1'].flatMap((id) => newest.map((message) => `${id}: ${message}`)),
      ...['a 0: ended', 'b 0: theirs'],
    ].toSorted(),
  )
})

test('a destination that has many alerts takes none from one that has few', async (t) => {
  const { run, add, told } = await aStore(t)
  await add('a 0', 'b 0')
  for (let i = 1; i <= MAX_WAITING + 5; i++) await run(...insertAlert('a', `${i}`, anAlert()))
  await run(...insertAlert('b', 'first', anAlert()), ...insertAlert('b', 'second', anAlert()))
  assert.deepEqual((await told()).slice(MAX_WAITING), ['b 0: first', 'b 0: second'])
})

test('the newest of too many that wait for their time takes the place of the one before, if that says the same', async (t) => {
  const { run, add, told, alerts } = await aStore(t)
  await add('a 0', 'b 0')
  const others = ['a 0: theirs', 'a 0: theirs too']
  await run(...insertAlert('a', 'theirs', LATER), ...insertAlert('a', 'theirs too', LATER))
  for (let i = 1; i < MAX_WAITING; i++) await run(...insertAlert('b', `${i}`, LATER))
  const all = Array.from({ length: MAX_WAITING - 1 }, (_, i) => `b 0: ${i + 1}`)
  await run(...insertAlert('b', 'lasting', { ...LATER, replaces: false }))
  await run(...insertAlert('b', 'new', LATER))
  assert.deepEqual(await told(), [...others, ...all, 'b 0: lasting', 'b 0: new'])
  await run(...insertAlert('b', 'newer', LATER))
  assert.deepEqual(await told(), [...others, ...all, 'b 0: lasting', 'b 0: newer'])
  const [newer = assert.fail()] = (await alerts('b 0')).slice(-1)
  await run(noteAttempt(newer, { at: NOW, outcome: '2xx', doneAt: NOW }))
  await run(...insertAlert('b', 'newest', LATER))
  const ended = 'b 0: newer'
  assert.deepEqual(await told(), [...others, ...all, 'b 0: lasting', ended, 'b 0: newest'])
})

test('what has ended takes no place of what waits for its time', async (t) => {
  const { run, add, told, alerts } = await aStore(t)
  await add('a 0')
  for (let i = 1; i <= MAX_WAITING; i++) await run(...insertAlert('a', `${i}`, LATER))
  const [first = assert.fail()] = await alerts('a 0')
  await run(noteAttempt(first, { at: NOW, outcome: '2xx', doneAt: NOW }))
  await run(...insertAlert('a', 'new', LATER))
  const full = await told()
  assert.equal(full.length, MAX_WAITING + 1)
  await run(...insertAlert('a', 'newer', LATER))
  assert.deepEqual(await told(), [...full.slice(0, -1), 'a 0: newer'])
})

test('what waits for its time at one owner does not give way to what another one is told', async (t) => {
  const { run, add, told } = await aStore(t)
  await add('a 0', 'b 0')
  for (let i = 1; i <= MAX_WAITING + 5; i++) await run(...insertAlert('a', `${i}`, LATER))
  const before = await told()
  assert.equal(before.includes('a 0: 1'), true)
  await run(...insertAlert('b', 'one', anAlert()))
  assert.deepEqual(await told(), [...before, 'b 0: one'])
})

test('an owner who is gone takes nothing of another one along, and no owners take nothing', async (t) => {
  const { run, add, told, dueAt } = await aStore(t)
  assert.deepEqual(dropOwners([]), [])
  await add('a 0', 'b 0', 'c 0')
  for (const owner of ['a', 'b', 'c']) await run(...insertAlert(owner, 'one', anAlert()))
  await run(...dropOwners(['a', 'c']))
  assert.deepEqual(await told(), ['b 0: one'])
  assert.deepEqual(await dueAt(), { 'b 0': NOW })
})

test('a destination that is dropped takes what waits for it along, and can be dropped once', async (t) => {
  const { run, add, told, dueAt } = await aStore(t)
  await add('a 0', 'a 1')
  await run(...insertAlert('a', 'one', anAlert()))
  await run(...dropDestination('a 0'))
  assert.deepEqual(await told(), ['a 1: one'])
  assert.deepEqual(Object.keys(await dueAt()), ['a 1'])
  await assert.rejects(run(...dropDestination('a 0')), UnitRefused)
})

test('an attempt is noted of one alert, and what it stands for adds up', async (t) => {
  const { run, add, alerts } = await aStore(t)
  await add('a 0', 'a 1')
  await run(...insertAlert('a', 'one', anAlert()), ...insertAlert('a', 'two', anAlert()))
  const [one = assert.fail()] = await alerts('a 0')
  await run(noteAttempt(one, { at: NOW + 1, outcome: '5xx', doneAt: null }))
  await run(noteAttempt(one, { at: NOW + 2, outcome: 'failed', doneAt: NOW + 3 }))
  const [tried, untried] = await alerts('a 0')
  const attempts = { attempts: 2, attempted_at: NOW + 2, outcome: 'failed' }
  assert.deepEqual(tried, { ...one, ...attempts, done_at: NOW + 3 })
  for (const other of [untried, ...(await alerts('a 1'))]) assert.equal(other?.attempts, 0)
})

test('the alerts that another one stands for are dropped of one destination, and what waits without what ended', async (t) => {
  const { run, add, told, alerts } = await aStore(t)
  await add('a 0', 'a 1')
  for (const message of ['1', '2', '3', '4']) await run(...insertAlert('a', message, anAlert()))
  await run(...dropAlerts('a 0', [1, 3]))
  assert.deepEqual((await told()).slice(0, 2), ['a 0: 2', 'a 0: 4'])
  const [ended = assert.fail()] = await alerts('a 0')
  await run(noteAttempt(ended, { at: NOW, outcome: '2xx', doneAt: NOW }))
  await run(dropWaiting('a 0'))
  assert.deepEqual(await told(), ['a 0: 2', 'a 1: 1', 'a 1: 2', 'a 1: 3', 'a 1: 4'])
})

test('at most so many alerts that ended are deleted together, and none that ended later', async (t) => {
  const { run, add, alerts } = await aStore(t)
  await add('a 0')
  for (const message of ['1', '2', '3', '4']) await run(...insertAlert('a', message, anAlert()))
  for (const [i, one] of (await alerts('a 0')).entries()) {
    const doneAt = [NOW, NOW, NOW + 1, null][i] ?? null
    await run(noteAttempt(one, { at: NOW, outcome: '2xx', doneAt }))
  }
  assert.equal((await run(purgeAlerts(NOW, 1))).all.length, 1)
  assert.equal((await run(purgeAlerts(NOW, 5))).all.length, 1)
  assert.equal((await alerts('a 0')).length, 2)
})

test('an owner sees what it was told since a time and what waits, the newest first, and when the next is due', async (t) => {
  const { run, add, store, alerts } = await aStore(t)
  await add('a 0', 'a 1', 'b 0')
  const tell = (owner: string, id: string, occurredAt: number) =>
    run(...insertAlert(owner, id, { ...anAlert(), occurredAt }))
  await tell('b', 'theirs', NOW)
  await tell('a', 'old', NOW - 2)
  await tell('a', 'told', NOW - 1)
  await tell('a', 'beside', NOW + 1)
  await tell('a', 'waits', NOW + 1)
  for (const id of ['a 0', 'a 1']) {
    for (const [i, one] of (await alerts(id)).entries()) {
      const doneAt = [NOW, NOW + 1, null, null][i] ?? null
      await run(noteAttempt(one, { at: NOW, outcome: '2xx', doneAt }))
    }
  }
  await run(...dropDestination('a 1'))
  const told = await store.told('a', NOW, 9)
  assert.deepEqual(
    told.map(({ message_id, next_at }) => [message_id, next_at]),
    [
      ['waits', null],
      ['beside', NOW - 2],
      ['told', null],
    ],
  )
  assert.equal((await store.told('a', NOW, 2)).length, 2)
})

test('what waits is sent in the order in which it was stored, although a clock went back between', async (t) => {
  const { store, run, add } = await aStore(t)
  await add('a 0')
  await run(...insertAlert('a', 'first', { ...anAlert(), occurredAt: NOW + MINUTE }))
  await run(...insertAlert('a', 'second', { ...anAlert(), occurredAt: NOW }))
  const waiting = await store.waiting('a 0')
  assert.deepEqual(
    waiting.map(({ message_id }) => message_id),
    ['first', 'second'],
  )
})
