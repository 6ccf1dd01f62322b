/** What an order in each state answers, and a delivery that something overtook. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import type { Claim } from '../../src/payment/claims.ts'
import { createDelivering } from '../../src/payment/delivering.ts'
import { REPLAY_MS } from '../../src/payment/order.ts'
import {
  CONTESTED,
  createOrderStore,
  type OrderRow,
  type OrderState,
  type OrderStore,
} from '../../src/payment/store.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { aShop, LIFE, SECRET } from '../support/shop.ts'
import { unit } from '../support/unit.ts'

const UNPROVEN = { kind: 'proof of payment required' }
const PROOF: Claim = { by: 'proof', isOpener: false }
const ID: Claim = { by: 'id', isOpener: false }
const OPENER: Claim = { by: 'id', isOpener: true }
const KEY_AND_ID: Claim = { by: 'weak key and id', isOpener: true }
const WEAK_KEY: Claim = { by: 'weak key', isOpener: true }

/** A settled order. `changes` says what happens to its row once its delivery has begun. */
async function aSettled(t: TestContext, changes?: string) {
  const shop = await aShop(t)
  const quote = await shop.paid()
  await shop.orders.reconcile(quote.paymentHash, 'stream')
  const row = async () => (await shop.order(quote)) as OrderRow
  const change = (set: string) =>
    shop.db.write(unit({ text: `update purchase_order set ${set}`, values: [] }))
  const real = createOrderStore(shop.db)
  const store: OrderStore = {
    ...real,
    async one(...statement) {
      if (changes !== undefined) await shop.db.write(unit({ text: changes, values: [] }))
      return real.one(...statement)
    },
  }
  const delivering = createDelivering({
    ...{ store, clock: shop.clock, log: shop.log },
    secrets: createSecrets([new Uint8Array(Buffer.from(SECRET, 'hex'))]),
    products: {
      catch: { newPublicId: () => '', provision: () => [], capability: ({ publicId }) => publicId },
    },
  })
  const answer = async (claim: Claim, facts: Partial<OrderRow> = {}) =>
    delivering.answer({ ...(await row()), ...facts } as OrderRow, () => claim)
  return { shop, quote, row, change, answer, delivering }
}

suite('the answer of an order', () => {
  test('an order in each state says where it stands, and judges the claim only if it counts', async (t) => {
    const { delivering, quote, row } = await aSettled(t)
    const settled = await row()
    const STATES: Partial<Record<OrderState, object>> = {
      opening: { kind: 'checkout unavailable' },
      pending: { kind: 'pending', quote },
      dead: { kind: 'order expired' },
      refunded: { kind: 'order refunded' },
    }
    for (const [state, outcome] of Object.entries(STATES)) {
      const order = { ...settled, state: state as OrderState }
      const judged = await delivering.answer(order, () => assert.fail('the claim was judged'))
      assert.deepEqual(judged, outcome)
    }
  })

  test('an order that is owed is told to its buyer, and to nobody who may be another', async (t) => {
    const { answer } = await aSettled(t)
    const owed = { state: 'paid_unfulfilled' } as const
    assert.deepEqual(await answer(ID, owed), { kind: 'checkout unavailable' })
    const contested = { ...owed, contested: CONTESTED.beforePayment }
    assert.deepEqual(await answer(ID, contested), UNPROVEN)
    assert.deepEqual(await answer(PROOF, contested), { kind: 'checkout unavailable' })
  })

  test('a settled order is delivered with what it sold, and logged', async (t) => {
    const { shop, quote, row, answer } = await aSettled(t)
    const { public_id, settled_at } = await row()
    assert.deepEqual(await answer(ID), {
      kind: 'delivered',
      body: JSON.stringify({ settled: true, resource: public_id }),
      paymentHash: quote.paymentHash,
      settledAt: settled_at,
    })
    assert.deepEqual(shop.logged.at(-1), {
      ...{ event: 'order.delivered', paymentHash: quote.paymentHash, product: 'catch' },
    })
    assert.equal((await row()).delivered_at, shop.clock.now())
  })

  test('a settled order that is over has expired, and is not claimed', async (t) => {
    const { shop, row, answer } = await aSettled(t)
    shop.clock.advance(LIFE)
    assert.deepEqual(await answer(PROOF), { kind: 'order expired' })
    assert.equal((await row()).delivered_at, null)
  })

  test('a contested order is delivered to a claim that reaches it, and to no other one', async (t) => {
    const { change, answer, row } = await aSettled(t)
    await change(`contested = ${CONTESTED.beforePayment}`)
    assert.deepEqual(await answer(OPENER), UNPROVEN)
    assert.equal((await row()).delivered_at, null)
    assert.equal((await answer(PROOF)).kind, 'delivered')
  })
})

suite('a delivery that was overtaken', () => {
  const OVERTAKEN: Record<string, [change: string, claim: Claim, outcome: object]> = {
    'the row was deleted': ['delete from purchase_order', PROOF, { kind: 'order not found' }],
    'another had the answer': [
      'update purchase_order set delivered_at = settled_at',
      ID,
      { kind: 'already delivered' },
    ],
    'it was sealed': ['update purchase_order set sealed_at = 1', PROOF, { kind: 'order expired' }],
    'its key came from elsewhere': [
      `update purchase_order set contested = ${CONTESTED.beforePayment}`,
      OPENER,
      UNPROVEN,
    ],
  }
  for (const [what, [change, claim, outcome]] of Object.entries(OVERTAKEN)) {
    test(`a delivery is refused in the words of what happened: ${what}`, async (t) => {
      const { answer } = await aSettled(t, change)
      assert.deepEqual(await answer(claim), outcome)
    })
  }

  test('who proves the payment gets the answer that another has got already', async (t) => {
    const { answer } = await aSettled(t, 'update purchase_order set delivered_at = settled_at')
    assert.equal((await answer(PROOF)).kind, 'delivered')
  })
})

suite('the repeat of an answer', () => {
  /** What a delivered order answers to a claim: while it lives, if it is contested, and once it is over. */
  const REPEATS: [claim: Claim, live: string, contested: string][] = [
    [PROOF, 'delivered', 'delivered'],
    [KEY_AND_ID, 'delivered', UNPROVEN.kind],
    [WEAK_KEY, UNPROVEN.kind, UNPROVEN.kind],
    [OPENER, 'already delivered', UNPROVEN.kind],
  ]
  for (const [claim, live, contested] of REPEATS) {
    test(`a delivered order is repeated, or says what would repeat it: ${claim.by}`, async (t) => {
      const { shop, row, answer } = await aSettled(t)
      await answer(PROOF)
      const kind = async (facts?: Partial<OrderRow>) => (await answer(claim, facts)).kind
      assert.equal(await kind(), live)
      assert.equal(await kind({ contested: CONTESTED.beforePayment }), contested)
      shop.clock.advance(REPLAY_MS)
      assert.equal(await kind(), 'already delivered')
      assert.ok(await row())
    })
  }
})

suite('an order that cannot be handed over', () => {
  test('an order without a payment or a settlement is a fault, and nothing is handed over', async (t) => {
    const { delivering, row } = await aSettled(t)
    const settled = await row()
    for (const lacks of [{ payment_hash: null }, { settled_at: null }])
      assert.throws(() => delivering.handOver({ ...settled, ...lacks }), /the order is not settled/)
  })

  test('a seed that does not open is a fault, and so is none', async (t) => {
    const { delivering, row } = await aSettled(t)
    const settled = await row()
    for (const seed of [null, new Uint8Array(80)])
      assert.throws(() => delivering.handOver({ ...settled, seed }), /seed .* does not open/)
  })
})
