/** What the row of an order means, at its limits. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { endOfLife, isSameRequest, requestHash } from '../../src/payment/order.ts'
import type { OrderRow } from '../../src/payment/store.ts'
import { aRequest, SECOND } from '../support/shop.ts'

const NOW = Date.UTC(2026, 0, 2, 3, 4)
const LAST_DATE_MS = 8.64e15
const PLAN = { planId: 'spark', priceSats: 100, durationSeconds: 3600 }

const order = (facts: Partial<OrderRow> = {}): OrderRow =>
  ({
    product: 'catch',
    plan_id: 'spark',
    plan: JSON.stringify(PLAN),
    restored_at: null,
    request_hash: requestHash(aRequest(), PLAN),
    ...facts,
  }) as OrderRow

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

suite('the request of an order', () => {
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
