/** A receipt is of one intent, and a payment charges one project. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnitRefused } from '../../src/db/db.ts'
import {
  authorizeIntent,
  giveBackReceipt,
  honourIntent,
  renewReceipt,
} from '../../src/gate/store.ts'
import { aGateStore, anIntent, authorized, newReceipt, refusal, T } from './rows.ts'

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
    await run(giveBackReceipt(name, `receipt of ${name}`, T + 3))
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

test('a receipt is not renewed after the third failed run, until it is honoured for one run more', async (t) => {
  const { run, insert, receipt, change, store } = await aGateStore(t)
  for (const name of ['a', 'b', 'c']) {
    await insert(anIntent(name, 'q'))
    await run(...authorized(name, 'q'))
    await change('gate_receipt', name, { failed_runs: 2 })
    await run(giveBackReceipt(name, `receipt of ${name}`, T + 3))
  }
  const fresh = { receipt_id: 'fresh', expires_at: T + 9, receipt: 'fresh text' }
  const failed = await receipt('b')
  await assert.rejects(run(renewReceipt(failed, fresh)), UnitRefused)
  await run(honourIntent('b', T + 4))
  assert.deepEqual(await receipt('b'), { ...failed, failed_runs: 2 })
  await run(renewReceipt(failed, fresh))
  assert.deepEqual((await run(giveBackReceipt('b', 'fresh', T + 5))).all, [{ failed_runs: 3 }])
  assert.deepEqual(
    (await store.unhonoured(9)).map(({ intent_id }) => intent_id),
    ['a', 'c', 'b'],
  )
  assert.equal((await store.unhonoured(2)).length, 2, 'so many at most')
  await assert.rejects(run(honourIntent('none', T + 4)), UnitRefused)
})
