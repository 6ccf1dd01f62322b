/** Each statement changes the order that it names, if that is in the state that it asks for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnitRefused } from '../../src/db/db.ts'
import {
  dropOpening,
  insertOrder,
  invoiceOrder,
  limitOpen,
  reclaimOrder,
  takeTurn,
} from '../../src/payment/opening.ts'
import {
  CONTESTED,
  claimLookup,
  claimSweep,
  confirmDead,
  contestOrder,
  deliverOrder,
  failSettlement,
  killOrder,
  type OrderRow,
  type OrderState,
  resealOrder,
  sealDelivery,
  sealOverdue,
  settleOrder,
} from '../../src/payment/store.ts'
import { overBy } from '../support/deletion.ts'
import { orderRows, SETTLED, T } from '../support/order-rows.ts'

const STATES = ['opening', 'pending', 'settled', 'dead', 'paid_unfulfilled', 'refunded'] as const
const SETTLEMENT: Parameters<typeof settleOrder>[1] = {
  ...{ settled_at: T + 1, settled_by: 'stream', public_id: 'c', seed: new Uint8Array([9]) },
  ...{ expires_at: T + 99, delivered_at: T + 2 },
}
const INVOICE = {
  network: 'mainnet',
  bolt11: 'ln',
  payment_hash: 'h',
  quote_expires_at: T,
} as const

test('an order is settled when it waits for its payment, or is dead, and one that is paid only when that is asked', async (t) => {
  for (const [isUnfulfilledToo, settling] of [
    [false, 'pending dead'],
    [true, 'pending dead paid_unfulfilled'],
  ] as const) {
    const settled: OrderState[] = []
    for (const state of STATES) {
      const { run, add, row } = await orderRows(t)
      await add('other', { state })
      await add('one', { state, settled_at: T })
      const other = await row('other')
      const done = await run(settleOrder('one', SETTLEMENT, isUnfulfilledToo)).catch(
        (error: unknown) => assert.ok(error instanceof UnitRefused),
      )
      if (done) settled.push(state)
      const after = await row('one')
      const unfulfilled_at = state === 'paid_unfulfilled' && isUnfulfilledToo ? T : null
      const changed = { ...after, ...SETTLEMENT, state: 'settled', unfulfilled_at }
      if (done) assert.deepEqual(after, changed)
      else assert.deepEqual(after.state, state)
      assert.deepEqual(await row('other'), other)
    }
    assert.equal(settled.join(' '), settling)
  }
})

test('a payment that provisions nothing is noted of an order that is pending or dead', async (t) => {
  for (const state of STATES) {
    const { run, add, row } = await orderRows(t)
    await add('other', { state })
    await add('one', { state })
    const rows = await run(failSettlement('one', T + 1, 'lookup'))
    const isOpen = state === 'pending' || state === 'dead'
    assert.equal(rows.length, isOpen ? 1 : 0, state)
    const { state: after, settled_at, settled_by } = await row('one')
    const noted = ['paid_unfulfilled', T + 1, 'lookup']
    assert.deepEqual([after, settled_at, settled_by], isOpen ? noted : [state, null, null])
    assert.equal((await row('other')).state, state)
  }
})

test('an order dies while it waits for its payment, alone, and only then is its death confirmed', async (t) => {
  const { run, add, row } = await orderRows(t)
  for (const id of ['other', 'one', 'final']) await add(id)
  await run(killOrder('one', false), killOrder('final', true))
  assert.deepEqual([(await row('one')).state, (await row('one')).is_dead_final], ['dead', 0])
  assert.deepEqual([(await row('final')).state, (await row('final')).is_dead_final], ['dead', 1])
  assert.equal((await row('other')).state, 'pending')
  await assert.rejects(run(killOrder('one', true)), UnitRefused)
  await add('guess', { state: 'dead' })
  await run(confirmDead('one'), confirmDead('other'))
  assert.equal((await row('one')).is_dead_final, 1)
  assert.equal((await row('other')).is_dead_final, 0)
  assert.equal((await row('guess')).is_dead_final, 0)
})

test('an order is delivered once, when it is settled, not sealed, not over and not contested too much', async (t) => {
  const { run, add, row } = await orderRows(t)
  await add('other', SETTLED)
  await add('one', { ...SETTLED, contested: CONTESTED.afterPayment })
  for (const [id, some] of Object.entries({
    unpaid: { state: 'pending', expires_at: T + 100 },
    sealed: { sealed_at: T },
    over: { expires_at: T + 1 },
    contested: { contested: CONTESTED.beforePayment },
  } as Record<string, Partial<OrderRow>>)) {
    await add(id, { ...SETTLED, ...some })
    assert.deepEqual(await run(deliverOrder(id, T + 1, CONTESTED.afterPayment)), [], id)
  }
  assert.equal((await run(deliverOrder('one', T + 1, CONTESTED.afterPayment))).length, 1)
  assert.equal((await row('one')).delivered_at, T + 1)
  assert.equal((await row('other')).delivered_at, null)
  assert.deepEqual(await run(deliverOrder('one', T + 1, CONTESTED.afterPayment)), [])
})

test('the first strange use of a key contests one order, the stronger the earlier it comes', async (t) => {
  for (const state of STATES) {
    const { run, add, row } = await orderRows(t)
    await add('other', { state })
    await add('one', { state })
    assert.equal((await run(contestOrder('one'))).length, 1)
    const isBefore = ['opening', 'pending', 'dead'].includes(state)
    const contested = isBefore ? CONTESTED.beforePayment : CONTESTED.afterPayment
    assert.equal((await row('one')).contested, contested, state)
    assert.equal((await row('other')).contested, CONTESTED.no)
  }
})

test('an order that is contested already, sealed, or of an older release is not contested', async (t) => {
  const { run, add, row } = await orderRows(t)
  for (const [id, some] of Object.entries({
    already: { contested: CONTESTED.credentialOnly },
    sealed: { sealed_at: T },
    older: { opened_by: null },
  })) {
    await add(id, some)
    const before = await row(id)
    assert.deepEqual(await run(contestOrder(id)), [], id)
    assert.deepEqual(await row(id), before)
  }
})

test('a use seals the delivery of one capability, once, and wipes its seed', async (t) => {
  const { run, add, row } = await orderRows(t)
  await add('other', { ...SETTLED, public_id: 'd' })
  await add('one', { ...SETTLED, public_id: 'c' })
  await run(sealDelivery('c', T + 1), sealDelivery('c', T + 2))
  const { seed, sealed_at, sealed_by } = await row('one')
  assert.deepEqual([seed, sealed_at, sealed_by], [null, T + 1, 'use'])
  assert.equal((await row('other')).sealed_at, null)
})

test('age seals what is over or was delivered long ago, and notes nothing of what is sealed already', async (t) => {
  const { run, add, row } = await orderRows(t)
  await add('sealed', {
    ...SETTLED,
    seed: null,
    expires_at: T - 9,
    sealed_at: T - 5,
    sealed_by: 'use',
  })
  await add('over', { ...SETTLED, expires_at: T })
  await add('delivered', { ...SETTLED, delivered_at: T - 10 })
  await add('lately', { ...SETTLED, delivered_at: T - 9, expires_at: T + 1 })
  await run(sealOverdue(overBy(T), 10))
  const sealed = async (id: string) => {
    const { seed, sealed_at, sealed_by } = await row(id)
    return [seed?.[0] ?? null, sealed_at, sealed_by]
  }
  assert.deepEqual(await sealed('sealed'), [null, T - 5, 'use'])
  assert.deepEqual(await sealed('over'), [null, T, 'age'])
  assert.deepEqual(await sealed('delivered'), [null, T, 'age'])
  assert.deepEqual(await sealed('lately'), [7, null, null])
})

test('a seed is sealed again of one order, if it is still the one that was read', async (t) => {
  const { run, add, row } = await orderRows(t)
  await add('other', SETTLED)
  await add('one', SETTLED)
  await run(resealOrder('one', new Uint8Array([6]), new Uint8Array([8])))
  assert.equal((await row('one')).seed?.[0], 7)
  await run(resealOrder('one', new Uint8Array([7]), new Uint8Array([8])))
  assert.equal((await row('one')).seed?.[0], 8)
  assert.equal((await row('other')).seed?.[0], 7)
})

test('a look-up is claimed of one order that may have news, once in a while, whatever a wrong clock has noted', async (t) => {
  const { run, add, row } = await orderRows(t)
  const apart = 60_000
  await add('other', { looked_up_at: 0 })
  await add('one', { looked_up_at: T - 10 })
  assert.equal((await run(claimLookup('one', T - 1, 10))).length, 0)
  assert.equal((await run(claimLookup('one', T, 10))).length, 1)
  assert.equal((await row('one')).looked_up_at, T)
  assert.equal((await row('other')).looked_up_at, 0)
  await add('ahead', { looked_up_at: T + apart })
  assert.equal((await run(claimLookup('ahead', T, 10))).length, 0)
  assert.equal((await run(claimLookup('ahead', T - 1, 10))).length, 1)
  for (const state of STATES) {
    for (const is_dead_final of [0, 1]) {
      const id = `${state} ${is_dead_final}`
      await add(id, { state, is_dead_final, looked_up_at: T })
      const hasNews = state === 'pending' || (state === 'dead' && is_dead_final === 0)
      assert.equal((await run(claimSweep(id, T - 1, T + 9))).length, 0, id)
      assert.equal((await run(claimSweep(id, T, T + 9))).length, hasNews ? 1 : 0, id)
      assert.equal((await run(claimLookup(id, T + 99, 10))).length, hasNews ? 1 : 0, id)
    }
  }
  assert.equal((await row('other')).looked_up_at, 0)
})

test('a claim to make the invoice is taken over, used and given up by who has it, of one order that has none', async (t) => {
  const { db, run, add, row } = await orderRows(t)
  await add('other', { state: 'opening', payment_hash: null })
  await add('one', { state: 'opening', payment_hash: null })
  await add('pending')
  assert.deepEqual(await run(reclaimOrder('one', T - 1, T + 9)), [])
  assert.deepEqual(await run(reclaimOrder('pending', T, T + 9)), [])
  assert.equal((await run(reclaimOrder('one', T, T + 9))).length, 1)
  assert.deepEqual([(await row('one')).claimed_at, (await row('other')).claimed_at], [T + 9, T])
  for (const refused of [
    invoiceOrder('one', T, INVOICE),
    invoiceOrder('pending', T, INVOICE),
    dropOpening('one', T),
    dropOpening('pending', T),
  ]) {
    await assert.rejects(run(refused), UnitRefused)
  }
  await run(invoiceOrder('one', T + 9, INVOICE))
  const { state, network, bolt11, payment_hash, quote_expires_at } = await row('one')
  assert.deepEqual({ network, bolt11, payment_hash, quote_expires_at }, INVOICE)
  assert.deepEqual([state, (await row('other')).state], ['pending', 'opening'])
  await add('third', { state: 'opening', payment_hash: null })
  await run(dropOpening('third', T))
  const left = await db.read('select order_id from purchase_order order by order_id')
  assert.deepEqual(
    left.map(({ order_id }) => order_id),
    ['one', 'other', 'pending'],
  )
})

test('an order is opened once, and not under an id that names another order already', async (t) => {
  const { run, insert } = await orderRows(t)
  const order: Parameters<typeof insertOrder>[0] = {
    ...{ order_id: 'one', secret_id: 's', key_hash: new Uint8Array(1), plan: '{}', terms: '{}' },
    ...{ request_hash: new Uint8Array(1), product: 'catch', plan_id: 'standard', memo: 'm' },
    ...{ amount_sats: 1, client_network: 'n', opened_by: 'c', contested: 0, created_at: T },
    extends_id: null,
  }
  await run(insertOrder(order))
  await assert.rejects(run(insertOrder(order)), UnitRefused)
  const alias = { order_id: 'one', key_hash: new Uint8Array(1), created_at: T }
  await insert('order_alias', { alias_id: 'named', ...alias })
  await assert.rejects(run(insertOrder({ ...order, order_id: 'named' })), UnitRefused)
  await run(insertOrder({ ...order, order_id: 'two' }))
})

test('the limit of a client network counts its orders that are open and whose quote is not over', async (t) => {
  const { run, add } = await orderRows(t)
  const open = (max: number) => run(takeTurn('n'), limitOpen('n', T, max))
  for (const state of STATES) await add(state, { state, payment_hash: null })
  await add('over', { quote_expires_at: T })
  await add('elsewhere', { client_network: 'elsewhere' })
  await open(2)
  await assert.rejects(open(1), UnitRefused)
  await add('without a quote', { state: 'opening', quote_expires_at: null, payment_hash: null })
  await open(3)
  await assert.rejects(open(2), UnitRefused)
})
