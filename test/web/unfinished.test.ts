import assert from 'node:assert/strict'
import { test } from 'node:test'
import { begin, note, unfinished } from '../../src/web/lib/unfinished.ts'

const TERMS = {
  product: 'catch',
  planId: 'spark',
  priceSats: 100,
  lifetime: '1 day',
  limits: [],
} as const

test('of unfinished purchases the oldest are forgotten, and none that is paid, or whose proof is here', () => {
  const paid = begin(TERMS)
  note(paid, { isPaid: true })
  const proven = begin(TERMS)
  note(proven, { preimage: '00'.repeat(32) })
  const unpaid = begin(TERMS)
  for (let i = 0; i < 30; i++) begin(TERMS)
  const left = new Set(unfinished.value.map(({ idempotencyKey }) => idempotencyKey))
  assert.equal(left.size, 22)
  assert.deepEqual(
    [paid, proven, unpaid].map(({ idempotencyKey }) => left.has(idempotencyKey)),
    [true, true, false],
  )
})
