/** Which orders each query finds, in which order, and at most how many. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findRefund, findSale, recordRefund, recordSale } from '../../src/payment/sales.ts'
import { listOrders, showOrder } from '../../src/payment/showing.ts'
import type { OrderRow } from '../../src/payment/store.ts'
import { findTombstone, KEEP_DEAD_MS, purgeOrders } from '../../src/payment/tombstones.ts'
import { orderRows, SETTLED, T } from '../support/order-rows.ts'

const STATES = ['pending', 'settled', 'dead', 'paid_unfulfilled', 'refunded'] as const

test('a key names its own order, or the one whose alias it is, and a payment hash names one beside it', async (t) => {
  const { add, insert, store } = await orderRows(t)
  await add('other')
  await add('one')
  for (const [name, order_id] of Object.entries({ one: 'one', other: 'other', named: 'one' })) {
    await insert('order_name', { name, order_id })
  }
  const found = async (...names: string[]) => {
    const { byKey, byHash } = await store.candidates(names, null)
    assert.equal(byHash, null)
    return byKey?.order_id ?? null
  }
  assert.equal(await found('one'), 'one')
  assert.equal(await found('named'), 'one')
  assert.equal(await found('nothing'), null)
  assert.equal(await found(), null)
  // The names of a key are those under each of the service's secrets: the first that has an order counts.
  assert.equal(await found('nothing', 'other', 'one'), 'other')
  assert.equal(await found('one', 'other'), 'one')
  assert.equal(await found('other', 'named'), 'one')
  const { byKey, byHash } = await store.candidates(['one'], 'hash of other')
  assert.deepEqual([byKey?.order_id, byHash?.order_id], ['one', 'other'])
  assert.equal((await store.candidates([], 'hash of other')).byHash?.order_id, 'other')
  assert.equal(await store.isNamed('one', ['nothing', 'named']), true)
  assert.equal(await store.isNamed('other', ['named', 'one']), false)
  assert.equal((await store.find('one'))?.order_id, 'one')
  assert.equal(await store.find('nothing'), null)
  assert.equal((await store.findByPaymentHash('hash of one'))?.order_id, 'one')
  assert.equal(await store.findByPaymentHash('another'), null)
})

test('the open quotes of a client network are counted, and the first that ends is the one to wait for', async (t) => {
  const { add, store } = await orderRows(t)
  assert.deepEqual(await store.openOf('n', T), { count: 0, firstEnd: null })
  for (const state of ['settled', 'dead', 'paid_unfulfilled', 'refunded'] as const) {
    await add(state, { state, quote_expires_at: T + 1 })
  }
  await add('over', { quote_expires_at: T })
  await add('elsewhere', { client_network: 'elsewhere', quote_expires_at: T + 1 })
  await add('later', { quote_expires_at: T + 9 })
  assert.deepEqual(await store.openOf('n', T), { count: 1, firstEnd: T + 9 })
  await add('first', { quote_expires_at: T + 7 })
  assert.deepEqual(await store.openOf('n', T), { count: 2, firstEnd: T + 7 })
})

test('the unpaid orders that would extend a capability are counted', async (t) => {
  const { add, store } = await orderRows(t)
  for (const state of STATES) await add(state, { state, extends_id: 'c' })
  await add('another', { extends_id: 'd' })
  assert.equal(await store.openExtensions('c'), 1)
})

test('a pass looks up what is pending and was not looked up since it began, the longest waiting first', async (t) => {
  const { add, store, ids } = await orderRows(t)
  for (const state of STATES) await add(state, { state, looked_up_at: T - 1 })
  await add('oldest', { looked_up_at: T - 2 })
  await add('now', { looked_up_at: T })
  assert.equal(ids(await store.pending(T, 9)), 'oldest pending')
  assert.equal(ids(await store.pending(T, 1)), 'oldest')
})

test('an order is due after a tenth of the time since its quote ended, or 15 seconds, or an hour', async (t) => {
  const { add, store, ids } = await orderRows(t)
  for (const state of STATES) await add(state, { state, looked_up_at: T - 15_001 })
  await add('not yet', { looked_up_at: T - 15_000 })
  const ended = { quote_expires_at: T - 500_000 }
  await add('not yet of 50 s', { ...ended, looked_up_at: T - 50_000 })
  await add('due of 50 s', { ...ended, looked_up_at: T - 50_001 })
  const longAgo = { quote_expires_at: T - 99 * 3_600_000 }
  await add('not yet of an hour', { ...longAgo, looked_up_at: T - 3_600_000 })
  await add('due of an hour', { ...longAgo, looked_up_at: T - 3_600_001 })
  assert.equal(ids(await store.due(T, 9)), 'due of an hour due of 50 s pending')
  assert.equal(ids(await store.due(T, 1)), 'due of an hour')
})

test('a pass looks up the deaths that are a guess and were not looked up since it began, the newest look first', async (t) => {
  const { add, store, ids } = await orderRows(t)
  for (const state of STATES) await add(state, { state, looked_up_at: T - 1 })
  await add('final', { state: 'dead', is_dead_final: 1, looked_up_at: T - 1 })
  await add('oldest', { state: 'dead', looked_up_at: T - 2 })
  await add('now', { state: 'dead', looked_up_at: T })
  assert.equal(ids(await store.deadByGuess(T, 9)), 'dead oldest')
  assert.equal(ids(await store.deadByGuess(T, 1)), 'dead')
})

test('orders under foreign secrets are counted while they are open, or can still be delivered', async (t) => {
  const { add, store } = await orderRows(t)
  for (const state of STATES) await add(state, { state })
  await add('ours', { secret_id: 'ours' })
  assert.equal(await store.foreign(['ours'], T), 1)
  await add('over', { ...SETTLED, expires_at: T })
  await add('wiped', { ...SETTLED, seed: null, expires_at: T + 1 })
  assert.equal(await store.foreign(['ours'], T), 1)
  await add('deliverable', { ...SETTLED, expires_at: T + 1 })
  assert.equal(await store.foreign(['ours'], T), 2)
  assert.equal(await store.foreign(['ours', 'secret'], T), 0)
})

test('orders are listed from a time on, the newest first', async (t) => {
  const { db, add } = await orderRows(t)
  for (const [id, created_at] of Object.entries({ c: T, b: T, a: T - 1, d: T + 1 })) {
    await add(id, { created_at, state: id === 'd' ? 'dead' : 'pending' })
  }
  const listed = async (some: Partial<Parameters<typeof listOrders>[1]> = {}) =>
    (await listOrders(db, { state: null, product: null, since: T, limit: 9, ...some }))
      .map(({ payment_hash }) => payment_hash?.at(-1))
      .join('')
  assert.equal(await listed(), 'dbc')
  assert.equal(await listed({ limit: 2 }), 'db')
  assert.equal(await listed({ state: 'pending', since: 0 }), 'bca')
  assert.equal(await listed({ product: 'pulse' }), '')
})

test('once the order of a capability is deleted, the newest that has extended it is found by its id', async (t) => {
  const { db, add } = await orderRows(t)
  const extension = { ...SETTLED, extends_id: 'c' }
  for (const [id, some] of Object.entries({
    first: { ...extension, settled_at: T + 1 },
    newest: { ...extension, settled_at: T + 2 },
    owed: { ...extension, state: 'paid_unfulfilled', settled_at: T + 3 },
    replacement: { ...extension, public_id: 'd', settled_at: T + 3 },
    'of another': { ...extension, extends_id: 'e', settled_at: T + 3 },
  } satisfies Record<string, Partial<OrderRow>>))
    await add(id, some)
  const found = await showOrder(db, { by: 'public_id', value: 'c' })
  assert.equal(found.kind === 'order' && found.order.order_id, 'newest')
})

test('the other orders of a capability are shown newest first, and those of one moment by their ids', async (t) => {
  const { db, add } = await orderRows(t)
  await add('bought', { ...SETTLED, public_id: 'c' })
  for (const id of ['b', 'a', 'c']) await add(id, { extends_id: 'c' })
  await add('later', { extends_id: 'c', created_at: T + 1 })
  await add('alone')
  const othersOf = async (value: string) => {
    const found = await showOrder(db, { by: 'order_id', value })
    assert.equal(found.kind, 'order')
    return (found.kind === 'order' ? found.others : []).map(({ payment_hash }) =>
      payment_hash?.replace('hash of ', ''),
    )
  }
  assert.deepEqual(await othersOf('bought'), ['later', 'a', 'b', 'c'])
  assert.deepEqual(await othersOf('b'), ['later', 'a', 'bought', 'c'])
  assert.deepEqual(await othersOf('alone'), [])
})

test('a sale is recorded of an order that is settled, once, with its own figures', async (t) => {
  const { db, run, add } = await orderRows(t)
  await add('other', { ...SETTLED, amount_sats: 99 })
  await add('one', SETTLED)
  await add('pending')
  await run(recordSale('one'), recordSale('one'), recordSale('pending'))
  const sale = { product: 'catch', plan_id: 'standard', amount_sats: 5, network: 'mainnet' }
  assert.deepEqual(await db.read('select * from sale'), [
    { payment_hash: 'hash of one', settled_at: T, ...sale },
  ])
  assert.equal((await findSale(db, 'hash of one'))?.amount_sats, 5)
  assert.equal(await findSale(db, 'hash of other'), null)
})

test('a refund is that of its own order', async (t) => {
  const { db, run, add } = await orderRows(t)
  for (const id of ['one', 'other']) await add(id)
  const refund = { paymentHash: 'hash of one', refundedAt: T, amountSats: 5, reason: 'r' }
  await run(recordRefund(refund))
  assert.equal((await findRefund(db, 'hash of one'))?.reason, 'r')
  assert.equal(await findRefund(db, 'hash of other'), null)
  const shown = await showOrder(db, { by: 'order_id', value: 'other' })
  assert.ok(shown.kind === 'order')
  assert.equal(shown.order.refunded_at, null)
})

test('an order that is over leaves a tombstone and takes its names along, and no other order does', async (t) => {
  const { db, run, add, insert } = await orderRows(t)
  const before = T + 100
  for (const state of STATES) {
    await add(state, { state, expires_at: T + 99, quote_expires_at: T + 99, sealed_by: null })
  }
  await add('used', { ...SETTLED, expires_at: T + 99, sealed_by: 'use' })
  await add('lives', { ...SETTLED, expires_at: before, sealed_at: T })
  await add('died lately', { state: 'dead', quote_expires_at: before })
  for (const order_id of ['settled', 'lives']) {
    for (const name of [order_id, `alias of ${order_id}`]) {
      await insert('order_name', { name, order_id })
    }
  }
  await run(...purgeOrders(before, T + 200))
  const left = await db.read('select order_id from purchase_order order by order_id')
  assert.equal(
    left.map(({ order_id }) => order_id).join(', '),
    'died lately, lives, paid_unfulfilled, pending, refunded',
  )
  assert.deepEqual(await db.read('select name from order_name order by name'), [
    { name: 'alias of lives' },
    { name: 'lives' },
  ])
  assert.deepEqual(await db.read('select * from order_tombstone order by payment_hash'), [
    { payment_hash: 'hash of dead', ended: 'dead', ended_at: T + 200 },
    { payment_hash: 'hash of settled', ended: 'aged', ended_at: T + 200 },
    { payment_hash: 'hash of used', ended: 'used', ended_at: T + 200 },
  ])
  assert.equal((await findTombstone(db, 'hash of used'))?.ended, 'used')
  assert.equal(await findTombstone(db, 'hash of lives'), null)
})

test('the tombstones of unpaid orders are deleted in the end, and those of paid ones never', async (t) => {
  const { db, run, insert } = await orderRows(t)
  await insert('order_tombstone', { payment_hash: 'dead', ended: 'dead', ended_at: T - 1 })
  await insert('order_tombstone', { payment_hash: 'dead later', ended: 'dead', ended_at: T })
  await insert('order_tombstone', { payment_hash: 'used', ended: 'used', ended_at: 0 })
  await run(...purgeOrders(0, T + KEEP_DEAD_MS))
  const left = await db.read('select payment_hash from order_tombstone order by payment_hash')
  assert.deepEqual(
    left.map(({ payment_hash }) => payment_hash),
    ['dead later', 'used'],
  )
})

test('one pass deletes 500 orders and 500 tombstones at most, and the next one goes on', async (t) => {
  const { db, run, add, insert } = await orderRows(t)
  const over = { state: 'dead', quote_expires_at: T } as const
  const old = Array.from({ length: 501 }, (_, i) => `${i}`)
  await Promise.all(
    old.flatMap((id) => [
      add(id, over),
      insert('order_tombstone', { payment_hash: `old ${id}`, ended: 'dead', ended_at: 0 }),
    ]),
  )
  const left = async () => [
    (await db.read('select 1 as one from purchase_order')).length,
    (await db.read('select 1 as one from order_tombstone where ended_at = 0')).length,
  ]
  for (const expected of [
    [1, 1],
    [0, 0],
  ]) {
    await run(...purgeOrders(T + 1, 1 + KEEP_DEAD_MS))
    assert.deepEqual(await left(), expected)
  }
})
