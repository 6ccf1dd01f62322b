/** What a statement of intents changes: one, of its project, while it can be paid. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnitRefused } from '../../src/db/db.ts'
import {
  askProviderAgain,
  claimVerification,
  type IntentRow,
  purgeUnpaid,
} from '../../src/gate/store.ts'
import { aGateStore, anIntent, authorized, END, PROJECTS, refusal, T } from './rows.ts'

test('a project has so many intents that await payment, and those of others, paid or over, do not count', async (t) => {
  const { run, insert } = await aGateStore(t)
  const limits = { now: T, maxOpen: 2 }
  await insert(anIntent('of another', 'p'))
  await insert({ ...anIntent('over', 'q'), honoured_until: T })
  await insert(anIntent('paid', 'q'))
  await run(...authorized('paid', 'q'))
  await insert({ ...anIntent('a', 'q'), honoured_until: T + 1 })
  await insert(anIntent('b', 'q'), limits)
  assert.equal(await refusal(insert(anIntent('c', 'q'), limits)), 'room')
  await insert(anIntent('c', 'q'), { ...limits, now: T + 1 })
})

test('a provider is asked about one intent by one of those who ask at once, not before the pause is over', async (t) => {
  const { run, insert, row } = await aGateStore(t)
  for (const name of ['a', 'b', 'c']) await insert(anIntent(name, 'p'))
  const claim = async (now: number, of?: IntentRow) =>
    run(claimVerification(of ?? (await row('b')), { now, nextAt: now + 2_000 }))
  const first = await row('b')
  await claim(T, first)
  await assert.rejects(claim(T, first), UnitRefused)
  const { verify_count, next_verify_at } = await row('b')
  assert.deepEqual([verify_count, next_verify_at], [1, T + 2_000])
  for (const other of ['a', 'c']) assert.equal((await row(other)).next_verify_at, 0)
  await assert.rejects(claim(T + 1_999), UnitRefused)
  // As it was read before.
  await assert.rejects(claim(T + 2_000, first), UnitRefused)
  await claim(T + 2_000)
  assert.equal((await row('b')).verify_count, 2)
})

test('a provider is asked about an open intent until it is honoured no more, to the millisecond', async (t) => {
  const { run, insert, row } = await aGateStore(t)
  for (const name of ['a', 'paid']) await insert(anIntent(name, 'p'))
  const claim = async (name: string, now: number) =>
    run(claimVerification(await row(name), { now, nextAt: now }))
  await run(...authorized('paid', 'p'))
  await assert.rejects(claim('paid', T), UnitRefused)
  await assert.rejects(claim('a', END + 1), UnitRefused)
  await claim('a', END)
})

test('the provider of one open intent may be asked again, for longer than before', async (t) => {
  const { run, insert, row, change } = await aGateStore(t)
  for (const name of ['a', 'b', 'c', 'paid']) await insert(anIntent(name, 'p'))
  await change('gate_intent', 'b', { next_verify_at: T })
  await change('gate_intent', 'c', { next_verify_at: T })
  await run(...authorized('paid', 'p'))
  for (const [name, until] of [
    ['paid', END + 1],
    ['b', END],
    ['none', END + 1],
  ] as const) {
    await assert.rejects(run(askProviderAgain(name, until)), UnitRefused, name)
  }
  await run(askProviderAgain('b', END + 1))
  const times = async (name: string) => {
    const { honoured_until, next_verify_at } = await row(name)
    return [honoured_until, next_verify_at]
  }
  assert.deepEqual(await times('b'), [END + 1, 0])
  assert.deepEqual(
    [await times('a'), await times('c')],
    [
      [END, 0],
      [END, T],
    ],
  )
})

test('intents that were never paid are deleted once they are over, to the millisecond, some at a time', async (t) => {
  const { run, insert, intents } = await aGateStore(t)
  await insert(anIntent('paid', 'p'))
  await run(...authorized('paid', 'p'))
  for (const name of ['a', 'b', 'c']) await insert(anIntent(name, 'q'))
  await insert({ ...anIntent('later', 'q'), honoured_until: END + 1 })
  assert.deepEqual((await run(purgeUnpaid(END, 9))).all, [])
  assert.equal((await run(purgeUnpaid(END + 1, 2))).all.length, 2)
  assert.equal((await run(purgeUnpaid(END + 1, 2))).all.length, 1)
  assert.deepEqual(await intents(), ['later', 'paid'])
})

test('what awaits payment is counted of one project, until it is over, and what was paid for ever', async (t) => {
  const { run, insert, store } = await aGateStore(t)
  assert.deepEqual(await store.counts('q', T), { open: 0, authorized: 0 })
  for (const project of PROJECTS) {
    for (const name of ['a', 'b', 'paid']) await insert(anIntent(`${name} of ${project}`, project))
    await run(...authorized(`paid of ${project}`, project))
  }
  await insert({ ...anIntent('first', 'q'), honoured_until: T + 5 })
  await insert({ ...anIntent('first of p', 'p'), honoured_until: T + 4 })
  await insert({ ...anIntent('first that is paid', 'q'), honoured_until: T + 4 })
  await run(...authorized('first that is paid', 'q'))
  assert.deepEqual(await store.counts('q', T), { open: 3, authorized: 2 })
  assert.deepEqual(await store.counts('q', T + 5), { open: 2, authorized: 2 })
  assert.deepEqual(await store.counts('q', END), { open: 0, authorized: 2 })
})

test('intents under a secret that is not configured are counted while they can be paid', async (t) => {
  const { run, insert, store } = await aGateStore(t)
  assert.equal(await store.foreign(['mine'], T), 0)
  await insert({ ...anIntent('a', 'p'), secret_id: 'theirs' })
  await insert({ ...anIntent('b', 'q'), secret_id: 'gone' })
  await insert({ ...anIntent('c', 'q'), secret_id: 'mine' })
  await insert({ ...anIntent('paid', 'q'), secret_id: 'gone' })
  await run(...authorized('paid', 'q'))
  assert.equal(await store.foreign(['mine'], T), 2)
  assert.equal(await store.foreign(['mine', 'gone'], T), 1)
  assert.equal(await store.foreign(['mine'], END - 1), 2)
  assert.equal(await store.foreign(['mine'], END), 0)
})
