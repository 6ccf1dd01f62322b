/** Which order a request belongs to: by its key, by its credential, or none; as one table. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import type { CheckedCredential, PaidOrder } from '../../src/payment/flows/flow.ts'
import { createIsLost, createMatching, statusFor } from '../../src/payment/matching.ts'
import { createOrderStore, type OrderRow } from '../../src/payment/store.ts'
import { OTHER_KEY } from '../support/orders.ts'
import { aRequest, aShop, KEY } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const verified = (order: PaidOrder): CheckedCredential<string> => ({
  ...{ kind: 'verified', challengeId: '' },
  order,
})
const invalid = (paymentHash: string | null): CheckedCredential<string> => ({
  ...{ kind: 'invalid', reason: 'wrong' },
  paymentHash,
})
const NO_CREDENTIAL: CheckedCredential<string> = { kind: 'none' }
const UNKNOWN = 'ff'.repeat(32)

/** The orders of two keys. */
async function twoOrders(t: TestContext) {
  const shop = await aShop(t)
  const { db, clock } = shop
  const store = createOrderStore(db)
  const [mine, other] = [await shop.quote(KEY), await shop.quote(OTHER_KEY)]
  const rowOf = async (quote: { orderId: string }) => (await shop.order(quote)) as OrderRow
  const change = (set: string, { orderId }: { orderId: string }) =>
    db.write(
      unit({ text: `update purchase_order set ${set} where order_id = $1`, values: [orderId] }),
    )
  const match = createMatching({ db, store, clock })
  const isLost = createIsLost({ db, clock })
  return { shop, mine, other, rowOf, change, match, isLost }
}

suite('the order of a request', () => {
  test('a request without a credential belongs to the order of its key, if there is one', async (t) => {
    const { mine, rowOf, match } = await twoOrders(t)
    const order = await rowOf(mine)
    assert.deepEqual(await match(null, aRequest(), NO_CREDENTIAL), { kind: 'none' })
    for (const isAlias of [false, true]) {
      assert.deepEqual(await match({ order, isAlias }, aRequest(), NO_CREDENTIAL), {
        ...{ kind: 'order', order, by: isAlias ? 'alias' : 'key', status: 'none' },
      })
    }
  })

  test('a credential that proves nothing leaves a request with its key', async (t) => {
    const { mine, other, rowOf, match } = await twoOrders(t)
    const order = await rowOf(mine)
    for (const hash of [null, UNKNOWN, other.paymentHash, mine.paymentHash]) {
      assert.deepEqual(
        await match({ order, isAlias: false }, aRequest(), invalid(hash)),
        { kind: 'order', order, by: 'key', status: 'invalid' },
        String(hash),
      )
    }
    for (const hash of [null, UNKNOWN])
      assert.deepEqual(await match(null, aRequest(), invalid(hash)), { kind: 'none' })
  })

  test('a credential leads to its order, with the key of another or without', async (t) => {
    const { mine, other, rowOf, match } = await twoOrders(t)
    const [order, paid] = [await rowOf(mine), await rowOf(other)]
    const credential = verified({ paymentHash: other.paymentHash })
    const found = { kind: 'order', order: paid, by: 'credential', status: 'verified' }
    assert.deepEqual(await match({ order, isAlias: false }, aRequest(), credential), found)
    assert.deepEqual(await match(null, aRequest(), credential), found)
    const wrong = { ...found, status: 'invalid' }
    assert.deepEqual(await match(null, aRequest(), invalid(other.paymentHash)), wrong)
    const mismatched = { kind: 'mismatched', paymentHash: other.paymentHash } as const
    assert.deepEqual(await match({ order, isAlias: false }, aRequest(), mismatched), {
      ...found,
      status: 'mismatched',
    })
  })

  test('a credential of the key’s own order belongs to the key, and costs no look for another', async (t) => {
    const { mine, rowOf, match } = await twoOrders(t)
    const order = { ...(await rowOf(mine)), payment_hash: UNKNOWN } as OrderRow
    const own = await match(
      { order, isAlias: true },
      aRequest(),
      verified({ paymentHash: UNKNOWN }),
    )
    assert.deepEqual(own, { kind: 'order', order, by: 'alias', status: 'verified' })
  })

  test('a key whose own order is decided is not led to another order', async (t) => {
    const { mine, other, rowOf, match } = await twoOrders(t)
    const order = await rowOf(mine)
    const credential = verified({ paymentHash: other.paymentHash })
    const decided = [
      [order, aRequest({ bodySha256: '11'.repeat(32) })],
      [{ ...order, state: 'refunded' } as OrderRow, aRequest()],
    ] as const
    for (const [named, request] of decided) {
      assert.deepEqual(await match({ order: named, isAlias: false }, request, credential), {
        ...{ kind: 'order', order: named, by: 'key', status: 'invalid' },
      })
    }
  })

  test('a credential of another purchase, or of a finished one, is a new purchase', async (t) => {
    const { mine, other, rowOf, change, match } = await twoOrders(t)
    const credential = verified({ paymentHash: other.paymentHash })
    const another = aRequest({ bodySha256: '11'.repeat(32) })
    assert.deepEqual(await match(null, another, credential), { kind: 'none' })
    await change(`state = 'refunded'`, other)
    assert.deepEqual(await match(null, aRequest(), credential), { kind: 'none' })
    const order = await rowOf(mine)
    assert.deepEqual(await match({ order, isAlias: false }, aRequest(), credential), {
      ...{ kind: 'order', order, by: 'key', status: 'invalid' },
    })
  })

  test('a payment to us without an order is lost', async (t) => {
    const { match } = await twoOrders(t)
    assert.deepEqual(await match(null, aRequest(), verified({ paymentHash: UNKNOWN })), {
      ...{ kind: 'lost', paymentHash: UNKNOWN },
    })
  })
})

suite('a lost order', () => {
  test('only a verified credential tells of a lost order, unless a tombstone tells what became of it', async (t) => {
    const { shop, isLost } = await twoOrders(t)
    const ask = { paymentHash: UNKNOWN, paid: null, request: aRequest() }
    const credential = verified({ paymentHash: UNKNOWN })
    assert.equal(await isLost({ ...ask, credential }), true)
    for (const other of [invalid(UNKNOWN), { kind: 'mismatched', paymentHash: UNKNOWN } as const])
      assert.equal(await isLost({ ...ask, credential: other }), false)
    const buried = `insert into order_tombstone (payment_hash, ended, ended_at) values ($1, 'dead', 1)`
    await shop.db.write(unit({ text: buried, values: [UNKNOWN] }))
    assert.equal(await isLost({ ...ask, credential }), false)
  })

  test('an order that was restored as another product than its credential names is lost still', async (t) => {
    const { shop, mine, rowOf, isLost } = await twoOrders(t)
    const row = await rowOf(mine)
    const restored = { ...row, restored_at: shop.clock.now() } as OrderRow
    const credential = verified({ paymentHash: mine.paymentHash })
    const lost = (paid: OrderRow, request = aRequest({ product: 'pulse' })) =>
      isLost({ paymentHash: mine.paymentHash, paid, request, credential })
    assert.equal(await lost(restored), true)
    assert.equal(await lost(restored, aRequest()), false)
    assert.equal(await lost(row), false)
    assert.equal(await lost({ ...restored, state: 'refunded' } as OrderRow), false)
  })
})

test('a verified credential counts for the order and the plan that it names, and for a restored order anyhow', () => {
  const order = { order_id: 'order_1', plan_id: 'spark', restored_at: null } as OrderRow
  const restored = { ...order, restored_at: 1 } as OrderRow
  const PAID: [facts: Omit<PaidOrder, 'paymentHash'>, status: string][] = [
    [{}, 'verified'],
    [{ orderId: 'order_1', planId: 'spark' }, 'verified'],
    [{ orderId: 'order_2', planId: 'spark' }, 'invalid'],
    [{ orderId: 'order_1', planId: 'flame' }, 'invalid'],
    [{ planId: 'flame' }, 'invalid'],
  ]
  for (const [facts, status] of PAID) {
    const credential = verified({ paymentHash: UNKNOWN, ...facts })
    assert.equal(statusFor(order, credential), status, JSON.stringify(facts))
    assert.equal(statusFor(restored, credential), 'verified', JSON.stringify(facts))
  }
  assert.equal(statusFor(restored, invalid(UNKNOWN)), 'invalid')
  assert.equal(statusFor(order, NO_CREDENTIAL), 'none')
})
