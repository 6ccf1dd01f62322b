/** Which orders each statement changes, and which of their columns, beside orders in every other state. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnitRefused } from '../../src/db/db.ts'
import { contestRestored } from '../../src/payment/operator.ts'
import { insertOrder, limitOpen, takeTurn } from '../../src/payment/quoting.ts'
import {
  claimLookup,
  confirmDead,
  contestOrder,
  deliverOrder,
  failSettlement,
  insertAlias,
  insertName,
  killOrder,
  MAX_ALIASES,
  mayHaveNews,
  type OrderRow,
  sealOverdue,
  settleOrder,
} from '../../src/payment/store.ts'
import type { After } from '../support/folder.ts'
import { orderRows, SETTLED, T } from '../support/order-rows.ts'

const STATES = ['pending', 'settled', 'dead', 'paid_unfulfilled', 'refunded'] as const
const SEED = new Uint8Array([9])
const SETTLEMENT = {
  settled_at: T + 1,
  settled_by: 'lookup' as const,
  expires_at: T + 99,
  delivered_at: T + 2,
}

const settle = (id: string, isUnfulfilledToo?: boolean) =>
  settleOrder(id, { ...SETTLEMENT, public_id: `of ${id}`, seed: SEED }, isUnfulfilledToo)

/** What `settle` changes. */
const settled = (id: string) => ({
  ...SETTLEMENT,
  state: 'settled',
  public_id: `of ${id}`,
  seed: [...SEED],
})

/** An order in each state, named like it, and another one that nothing is done with. */
async function inEachState(t: After, some: Partial<OrderRow> = {}) {
  const rows = await orderRows(t)
  for (const state of STATES) {
    await rows.add(state, { ...some, state })
    await rows.add(`other ${state}`, { ...some, state })
  }
  return rows
}

test('an order is settled while it waits for its payment, and after its death', async (t) => {
  const { changes } = await inEachState(t)
  for (const state of STATES) {
    const isOpen = state === 'pending' || state === 'dead'
    const expected = isOpen ? { [state]: settled(state) } : 'refused'
    assert.deepEqual(await changes(settle(state)), expected, state)
  }
})

test('an order that is owed is settled when that is asked, and keeps when it was paid', async (t) => {
  const { changes } = await inEachState(t, { settled_at: T })
  assert.deepEqual(await changes(settle('paid_unfulfilled', true)), {
    paid_unfulfilled: { ...settled('paid_unfulfilled'), unfulfilled_at: T },
  })
  for (const state of ['pending', 'dead'])
    assert.deepEqual(await changes(settle(state, true)), { [state]: settled(state) })
  for (const state of STATES) assert.equal(await changes(settle(state, true)), 'refused', state)
})

test('a payment that provisions nothing is noted of an order that is pending or dead', async (t) => {
  const { changes } = await inEachState(t)
  const noted = { state: 'paid_unfulfilled', settled_at: T + 1, settled_by: 'stream' }
  for (const state of STATES) {
    const isOpen = state === 'pending' || state === 'dead'
    const expected = isOpen ? { [state]: noted } : {}
    assert.deepEqual(await changes(failSettlement(state, T + 1, 'stream')), expected, state)
  }
})

test('an order dies while it waits for its payment, for certain or by a guess', async (t) => {
  const { add, changes } = await inEachState(t)
  await add('certain')
  assert.deepEqual(await changes(killOrder('certain', true)), {
    certain: { state: 'dead', is_dead_final: 1 },
  })
  assert.deepEqual(await changes(killOrder('pending', false)), { pending: { state: 'dead' } })
  for (const state of STATES) assert.equal(await changes(killOrder(state, true)), 'refused', state)
})

test('a death is confirmed of an order that died by a guess', async (t) => {
  const { add, changes } = await inEachState(t)
  await add('another guess', { state: 'dead' })
  for (const state of STATES) {
    const expected = state === 'dead' ? { dead: { is_dead_final: 1 } } : {}
    assert.deepEqual(await changes(confirmDead(state)), expected, state)
  }
  assert.deepEqual(await changes(confirmDead('dead')), {})
})

test('an order is delivered once, while it is settled, not sealed, not over, and to proof alone if it is contested', async (t) => {
  const { add, changes } = await inEachState(t, SETTLED)
  await add('another', SETTLED)
  await add('sealed', { ...SETTLED, sealed_at: T })
  await add('over', { ...SETTLED, expires_at: T + 2 })
  await add('contested', { ...SETTLED, contested: 1 })
  const deliver = (id: string, now: number, isProven = false) =>
    changes(deliverOrder(id, now, isProven))
  assert.deepEqual(await deliver('settled', T + 1), { settled: { delivered_at: T + 1 } })
  for (const id of [...STATES, 'sealed', 'over', 'contested'])
    assert.deepEqual(await deliver(id, T + 2), {}, id)
  assert.deepEqual(await deliver('contested', T + 2, true), { contested: { delivered_at: T + 2 } })
})

test('an open order is contested once, and no other is', async (t) => {
  const { changes } = await inEachState(t)
  for (const state of STATES) {
    assert.deepEqual(
      await changes(contestOrder(state)),
      state === 'pending' ? { [state]: { contested: 1 } } : {},
    )
    assert.deepEqual(await changes(contestOrder(state)), {}, state)
  }
})

test('a name names one order, its own or as an alias, and an order has only so many aliases', async (t) => {
  const { db, run, add } = await orderRows(t)
  for (const id of ['one', 'two']) await add(id)
  await run(insertName('one'))
  await assert.rejects(run(insertName('one')), UnitRefused)
  await run(insertAlias('two', 'one'))
  await assert.rejects(run(insertName('two')), UnitRefused)
  await run(insertAlias('one', 'two'))
  for (let i = 0; i < MAX_ALIASES + 3; i++) await run(insertAlias(`alias ${i}`, 'one'))
  const names = await db.read('select name, order_id from order_name')
  assert.deepEqual(new Set(names.map(({ order_id }) => order_id)), new Set(['one']))
  assert.equal(names.length, 1 + MAX_ALIASES)
  await run(insertAlias('an alias of its own', 'two'))
  const [own] = await db.read(`select name from order_name where order_id = 'two'`)
  assert.equal(own?.name, 'an alias of its own')
})

test('in a store that was restored, all orders that may be paid are contested, but no extension', async (t) => {
  const { add, changes } = await inEachState(t)
  for (const state of STATES) await add(`extension ${state}`, { state, extends_id: 'c' })
  const contested = { contested: 1 }
  assert.deepEqual(await changes(contestRestored), {
    pending: contested,
    'other pending': contested,
    dead: contested,
    'other dead': contested,
  })
})

test('age seals what is over or was delivered long ago, and notes nothing of what is sealed already', async (t) => {
  const { add, changes } = await orderRows(t)
  const used = { seed: null, expires_at: T - 9, sealed_at: T - 5, sealed_by: 'use' } as const
  await add('used', { ...SETTLED, ...used })
  await add('over', { ...SETTLED, expires_at: T })
  await add('delivered', { ...SETTLED, delivered_at: T - 10 })
  await add('lately', { ...SETTLED, delivered_at: T - 9, expires_at: T + 1 })
  const sealed = { seed: null, sealed_at: T, sealed_by: 'age' }
  assert.deepEqual(await changes(sealOverdue(T, 10)), { over: sealed, delivered: sealed })
})

test('a look-up is claimed of one order, unless somebody has looked it up since', async (t) => {
  const { add, changes } = await orderRows(t)
  for (const id of ['one', 'other']) await add(id)
  assert.deepEqual(await changes(claimLookup('one', T + 9, T - 1)), {})
  assert.deepEqual(await changes(claimLookup('one', T + 9, T)), { one: { looked_up_at: T + 9 } })
})

test('a look-up is claimed of orders that may have news, which are pending, or dead by a guess', async (t) => {
  for (const is_dead_final of [0, 1]) {
    const { changes, row } = await inEachState(t, { is_dead_final })
    for (const state of STATES) {
      const hasNews = state === 'pending' || (state === 'dead' && is_dead_final === 0)
      assert.equal(mayHaveNews(await row(state)), hasNews, state)
      const claimed = (looked_up_at: number) => (hasNews ? { [state]: { looked_up_at } } : {})
      assert.deepEqual(await changes(claimLookup(state, T + 9, T)), claimed(T + 9))
    }
  }
})

test('an order is opened once', async (t) => {
  const { run, add, row } = await orderRows(t)
  await add('one')
  const order = await row('one')
  await assert.rejects(run(insertOrder(order)), UnitRefused)
  await run(insertOrder({ ...order, order_id: 'two', payment_hash: 'h' }))
  assert.deepEqual(await row('two'), { ...order, order_id: 'two', payment_hash: 'h' })
})

test('the turns of all client networks are 256 rows at most', async (t) => {
  const { db, run } = await orderRows(t)
  for (const network of ['n', '192.0.2', '2001:db8::'])
    await run(takeTurn(network), takeTurn(network))
  const rows = await db.read('select bucket from opening_lock')
  assert.equal(rows.length, 3)
  assert.ok(rows.every(({ bucket }) => Number(bucket) < 256))
})

test('the limit of a client network counts its orders that are open and whose quote is not over', async (t) => {
  const { run, add } = await orderRows(t)
  const open = (max: number) => run(takeTurn('n'), limitOpen('n', T, max))
  for (const state of STATES) await add(state, { state })
  await add('over', { quote_expires_at: T })
  await add('elsewhere', { client_network: 'elsewhere' })
  await open(1)
  await assert.rejects(open(0), UnitRefused)
  await add('another')
  await open(2)
  await assert.rejects(open(1), UnitRefused)
})
