/** What the row of an order means, at its limits. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import {
  endOf,
  endOfLife,
  grantOf,
  isExtended,
  isOver,
  isReplacement,
  isSameRequest,
  isSealed,
  type OrderRequest,
  planOf,
  quoteOf,
  REPLAY_MS,
  requestHash,
  termsUnder,
} from '../../src/payment/order.ts'
import type { OrderRow } from '../../src/payment/store.ts'
import { aRequest, DAY, SECOND } from '../support/shop.ts'

const NOW = Date.UTC(2026, 0, 2, 3, 4)
const LAST_DATE_MS = 8.64e15
const PLAN = { planId: 'spark', priceSats: 100, durationSeconds: 3600 }
const SEED = new Uint8Array(32)

const order = (facts: Partial<OrderRow> = {}): OrderRow =>
  ({
    ...{ order_id: 'order_1', product: 'catch', plan_id: 'spark', plan: JSON.stringify(PLAN) },
    ...{ terms: '{"a":1}', memo: 'a memo', amount_sats: 100, contested: 0 },
    ...{ bolt11: 'lnbcrt1', payment_hash: 'ab', quote_expires_at: NOW, network: 'regtest' },
    ...{ state: 'settled', public_id: 'catch_1', extends_id: null, restored_at: null },
    ...{ settled_at: NOW, expires_at: NOW + DAY, delivered_at: null, sealed_at: null, seed: SEED },
    request_hash: requestHash(aRequest(), PLAN),
    ...facts,
  }) as OrderRow

suite('the quote of an order', () => {
  const quote = {
    ...{ orderId: 'order_1', product: 'catch', planId: 'spark', amountSats: 100 },
    ...{ bolt11: 'lnbcrt1', paymentHash: 'ab', expiresAt: NOW, network: 'regtest' },
    ...{ memo: 'a memo', durationSeconds: 3600 },
  }

  test('a quote is what the row says, and tells whether the key alone will be enough', () => {
    assert.deepEqual(quoteOf(order()), quote)
    for (const contested of [1] as const)
      assert.deepEqual(quoteOf(order({ contested })), { ...quote, proofRequired: true })
  })
})

suite('what a settled order grants', () => {
  test('the grant has the terms and the plan of the purchase', () => {
    assert.deepEqual(grantOf(order(), SEED), {
      ...{ orderId: 'order_1', publicId: 'catch_1', planId: 'spark', plan: PLAN, terms: { a: 1 } },
      ...{ seed: SEED, settledAt: NOW, expiresAt: NOW + DAY },
    })
    assert.deepEqual(planOf(order()), PLAN)
    assert.equal(endOf(order()), '2026-01-03T03:04:00.000Z')
  })

  for (const column of ['public_id', 'settled_at', 'expires_at'] as const) {
    test(`an order without its ${column} grants nothing`, () => {
      assert.throws(() => grantOf(order({ [column]: null }), SEED), /not settled grants nothing/)
    })
  }

  test('an order that is not settled has no end', () => {
    assert.throws(() => endOf({ expires_at: null }), /not settled has no end/)
  })

  test('a capability lives as long as its plan says, up to the last date there is', () => {
    const lasting = (durationSeconds: unknown) => ({ priceSats: 1, durationSeconds }) as never
    assert.equal(endOfLife(lasting(3600), NOW), NOW + 3600 * SECOND)
    assert.equal(endOfLife(lasting(0), LAST_DATE_MS), LAST_DATE_MS)
    for (const [duration, now] of [
      [1, LAST_DATE_MS],
      ...([undefined, 'a week', Number.NaN, 1e300, 0.0001] as unknown[]).map((one) => [one, NOW]),
    ] as [unknown, number][])
      assert.throws(() => endOfLife(lasting(duration), now), /does not say how long it lasts/)
  })
})

suite('the end of an order', () => {
  const at = (facts: Partial<OrderRow>) => isOver(order(facts), NOW)

  test('an order delivers until its seal, the end of its life or a day after its delivery', () => {
    assert.equal(at({}), false)
    assert.equal(at({ sealed_at: NOW - 1 }), true)
    assert.equal(at({ seed: null }), true)
    assert.equal(at({ expires_at: NOW + 1 }), false)
    assert.equal(at({ expires_at: NOW }), true)
    assert.equal(at({ expires_at: null }), false)
    assert.equal(at({ delivered_at: NOW - REPLAY_MS + 1 }), false)
    assert.equal(at({ delivered_at: NOW - REPLAY_MS }), true)
    assert.equal(REPLAY_MS, DAY)
  })

  test('a payment buys nothing more once its order is over or was paid back', () => {
    assert.equal(isSealed(order(), NOW), false)
    assert.equal(isSealed(order({ sealed_at: NOW }), NOW), true)
    assert.equal(isSealed(order({ state: 'refunded' }), NOW), true)
    for (const state of ['pending', 'dead', 'paid_unfulfilled'] as const)
      assert.equal(isSealed(order({ state, seed: null, sealed_at: null }), NOW), false, state)
  })

  test('an extension has no capability of its own, and what is sold in its place has one', () => {
    const kinds = (facts: Partial<OrderRow>) => [
      isExtended(order(facts)),
      isReplacement(order(facts)),
    ]
    assert.deepEqual(kinds({}), [false, false])
    assert.deepEqual(kinds({ public_id: null }), [false, false])
    assert.deepEqual(kinds({ extends_id: 'catch_0' }), [false, true])
    assert.deepEqual(kinds({ extends_id: 'catch_0', public_id: null }), [true, false])
    const unpaid = { state: 'pending', extends_id: 'catch_0', public_id: null } as const
    assert.deepEqual(kinds(unpaid), [false, false])
  })
})

suite('the request of an order', () => {
  const OTHERS: Record<string, Partial<OrderRequest>> = {
    product: { product: 'pulse' },
    plan: { planId: 'flame' as never },
    terms: { terms: { other: true } },
    body: { bodySha256: '11'.repeat(32) },
    'capability to extend': { extendsId: 'catch_0' },
  }

  test('a repeat is the same request', () => {
    assert.equal(isSameRequest(order(), aRequest()), true)
  })

  for (const [what, other] of Object.entries(OTHERS)) {
    test(`a request with another ${what} is another request`, () => {
      assert.equal(isSameRequest(order(), aRequest(other)), false)
      const [one, two] = [aRequest(), aRequest(other)].map((request) => requestHash(request, PLAN))
      assert.ok(one && two && !one.equals(two))
    })
  }

  test('terms that depend on the plan are those under the plan that the order keeps', () => {
    const terms: OrderRequest['terms'] = (plan) => ({ price: (plan as typeof PLAN).priceSats })
    assert.deepEqual(termsUnder(PLAN, aRequest({ terms })), { price: 100 })
    assert.deepEqual(termsUnder(PLAN, aRequest({ terms: { fixed: 1 } })), { fixed: 1 })
    const request = aRequest({ terms })
    const kept = order({ request_hash: requestHash(request, PLAN) })
    assert.equal(isSameRequest(kept, request), true)
    const dearer = JSON.stringify({ ...PLAN, priceSats: 101 })
    assert.equal(isSameRequest({ ...kept, plan: dearer }, request), false)
  })

  test('a restored order is told by its product alone, and one whose plan is broken by that and its plan', () => {
    const restored = order({ restored_at: NOW, request_hash: new Uint8Array() })
    assert.equal(isSameRequest(restored, aRequest({ bodySha256: '11'.repeat(32) })), true)
    assert.equal(isSameRequest(restored, aRequest({ planId: 'flame' as never })), true)
    assert.equal(isSameRequest(restored, aRequest({ product: 'pulse' })), false)
    const broken = order({ plan: '{' })
    assert.equal(isSameRequest(broken, aRequest({ bodySha256: '11'.repeat(32) })), true)
    assert.equal(isSameRequest(broken, aRequest({ planId: 'flame' as never })), false)
  })

  test('a request hash is 32 bytes of SHA-256 over canonical JSON, so that orders outlive a release', () => {
    const hash = requestHash(aRequest({ extendsId: 'catch_0' }), PLAN).toString('hex')
    assert.equal(hash, '782a36ff0c8590c3e33d68e663a1e1cf42ce5d2f9c7a5a43d64fa1f0c7bf3661')
    assert.equal(
      requestHash(aRequest(), PLAN).toString('hex'),
      '31ac040191e8642ee3e940313949d7742716f05289c916a5269276888d087a21',
    )
  })
})
