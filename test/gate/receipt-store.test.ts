/** A receipt is of one intent, and a payment charges one project. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnitRefused } from '../../src/db/db.ts'
import {
  authorizeIntent,
  giveBackReceipt,
  noteHonoured,
  noteUnhonoured,
  renewReceipt,
} from '../../src/gate/receipt-store.ts'
import {
  aGateStore,
  anIntent,
  authorized,
  givingBack,
  newReceipt,
  PROJECTS,
  refusal,
  T,
} from '../support/gate-store.ts'

test('a payment authorizes its own intent, once, and charges one credit of its own project', async (t) => {
  const { db, insert, run, row, credits, store } = await aGateStore(t)
  for (const project of PROJECTS) await insert(anIntent(`of ${project}`, project))
  const receipt = newReceipt('of q', 'q')
  const done = await db.write({ lockKey: 'of q', statements: authorizeIntent(receipt) })
  const stored = {
    ...receipt,
    credits_remaining: 9,
    give_backs: 0,
    failed_runs: 0,
    given_back_at: null,
  }
  assert.deepEqual(done.receipt, [stored])
  assert.deepEqual(await store.receiptOf('of q'), stored)
  assert.deepEqual(
    [(await row('of p')).state, (await row('of q')).state, (await row('of r')).state],
    ['open', 'authorized', 'open'],
  )
  assert.deepEqual(await credits(), { p: 10, q: 9, r: 10 })
  const again = newReceipt('of q', 'q', 'another')
  assert.equal(await refusal(run(...Object.values(authorizeIntent(again)))), 'all')
  assert.deepEqual(await credits(), { p: 10, q: 9, r: 10 })
  for (const other of ['of p', 'of r']) assert.equal(await store.receiptOf(other), null)
})

test('a payment for a project that is gone, or for no intent, changes nothing', async (t) => {
  const { db, insert, run, row } = await aGateStore(t)
  await insert(anIntent('a', 'p'))
  await run({ text: `delete from gate_project where project_id = 'p'`, values: [] })
  const authorizing = (intent: string, project: string) =>
    refusal(db.write({ lockKey: intent, statements: authorizeIntent(newReceipt(intent, project)) }))
  assert.equal(await authorizing('a', 'p'), 'credit')
  assert.equal(await authorizing('none', 'q'), 'intent')
  assert.equal((await row('a')).state, 'open')
})

test('the newest receipt of an intent is given back, once, so many times in all, and no other is', async (t) => {
  const { db, run, insert, store } = await aGateStore(t)
  for (const name of ['a', 'b', 'c']) {
    await insert(anIntent(name, 'p'))
    await run(...authorized(name, 'p'))
  }
  const giveBack = (intentId: string, receiptId: string, max = 2) =>
    db.write({
      lockKey: intentId,
      statements: giveBackReceipt({ intentId, receiptId, now: T + 3, max }),
    })
  for (const [intent, receipt] of [
    ['b', 'receipt of a'],
    ['b', ''],
    ['none', 'receipt of b'],
  ] as const) {
    assert.equal(await refusal(giveBack(intent, receipt)), 'receipt')
  }
  assert.equal(await refusal(giveBack('b', 'receipt of b', 0)), 'receipt')
  assert.deepEqual((await giveBack('b', 'receipt of b', 1)).receipt, [{ give_backs: 0 }])
  assert.equal(await refusal(giveBack('b', 'receipt of b')), 'receipt')
  const givenBack = async (name: string) => (await store.receiptOf(name))?.given_back_at
  assert.deepEqual(
    [await givenBack('a'), await givenBack('b'), await givenBack('c')],
    [null, T + 3, null],
  )
  assert.equal(await store.isGivenBack('b', 'receipt of b'), true)
  for (const [intent, receipt] of [
    ['a', 'receipt of a'],
    ['a', 'receipt of b'],
    ['b', 'receipt of a'],
  ] as const) {
    assert.equal(await store.isGivenBack(intent, receipt), false)
  }
})

test('a receipt that was given back is renewed once, with another id, end and text, and no other is', async (t) => {
  const { run, insert, receipt } = await aGateStore(t)
  for (const name of ['a', 'b', 'c']) {
    await insert(anIntent(name, 'p'))
    await run(...authorized(name, 'p'))
  }
  const fresh = { receipt_id: 'fresh', expires_at: T + 9, receipt: 'fresh text' }
  const kept = [await receipt('a'), await receipt('b'), await receipt('c')]
  const [, old] = kept
  assert.ok(old)
  await assert.rejects(run(renewReceipt(old, fresh)), UnitRefused)
  for (const name of ['b', 'c']) {
    await run(...givingBack(name, `receipt of ${name}`))
  }
  const given = await receipt('b')
  await assert.rejects(run(renewReceipt({ ...given, receipt_id: 'other' }, fresh)), UnitRefused)
  await assert.rejects(run(renewReceipt({ ...given, intent_id: 'c' }, fresh)), UnitRefused)
  const renewed = { ...old, ...fresh, give_backs: 1, failed_runs: 1 }
  assert.deepEqual((await run(renewReceipt(given, fresh))).all, [renewed])
  assert.deepEqual(await receipt('b'), renewed)
  assert.deepEqual(await receipt('a'), kept[0])
  assert.equal((await receipt('c')).receipt_id, 'receipt of c')
  await assert.rejects(run(renewReceipt(given, fresh)), UnitRefused)
})

test('a payment that is not honoured is noted once, until it is honoured, and then anew', async (t) => {
  const { run, insert, row, notes } = await aGateStore(t)
  for (const name of ['a', 'b', 'c']) await insert(anIntent(name, 'q'))
  const note = async (name: string, now: number, reason = 'project missing' as const) =>
    run(noteUnhonoured(await row(name), { reason, now }))
  for (const name of ['a', 'b', 'c']) await note(name, T)
  await assert.rejects(note('b', T + 1), UnitRefused)
  const first = { ...{ project_id: 'q', amount_sats: 50, reason: 'project missing' } }
  const of = (name: string, noticed_at: number, honoured_at: number | null) => ({
    ...{ intent_id: name, ...first, payment_hash: `hash of ${name}`, noticed_at, honoured_at },
  })
  assert.deepEqual(await notes(), [of('a', T, null), of('b', T, null), of('c', T, null)])
  await run(noteHonoured('b', T + 2))
  await run(noteHonoured('b', T + 3), noteHonoured('none', T + 3))
  assert.deepEqual(await notes(), [of('a', T, null), of('b', T, T + 2), of('c', T, null)])
  await run(noteUnhonoured(await row('b'), { reason: 'given back twice', now: T + 4 }))
  assert.deepEqual(await notes(), [
    of('a', T, null),
    { ...of('b', T + 4, null), reason: 'given back twice' },
    of('c', T, null),
  ])
})

test('payments that are not honoured are listed, the first that was noticed first, so many at most', async (t) => {
  const { run, insert, row, store } = await aGateStore(t)
  const at = { c: T, b: T + 1, a: T + 1, d: T + 2 }
  for (const [name, now] of Object.entries(at)) {
    await insert(anIntent(name, 'q'))
    await run(noteUnhonoured(await row(name), { reason: 'project missing', now }))
  }
  const listed = async (max: number) =>
    (await store.unhonoured(max)).map(({ intent_id }) => intent_id)
  assert.deepEqual(await listed(9), ['c', 'a', 'b', 'd'])
  assert.deepEqual(await listed(2), ['c', 'a'])
  await run(noteHonoured('a', T))
  assert.deepEqual(await listed(9), ['c', 'b', 'd'])
})
