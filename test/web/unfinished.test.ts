import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PurchaseRecord } from '../../src/client/index.ts'
import { type Begun, begin, isPaid, storeOf, unfinished } from '../../src/web/lib/unfinished.ts'

const TERMS = {
  product: 'catch',
  planId: 'spark',
  priceSats: 100,
  lifetime: '1 day',
  limits: [],
} as const

test('of unfinished purchases the oldest are forgotten, and none that is paid, or whose proof is here', () => {
  const delivered = stored({ state: 'delivered', resource: {} })
  const proven = stored({ state: 'paid', preimage: '00'.repeat(32) })
  const unpaid = stored({ state: 'quoted' })
  for (let i = 0; i < 30; i++) stored({ state: 'quoted' })
  const left = new Set(unfinished.value.map(({ idempotencyKey }) => idempotencyKey))
  assert.equal(left.size, 22)
  assert.deepEqual(
    [delivered, proven, unpaid].map(({ idempotencyKey }) => left.has(idempotencyKey)),
    [true, true, false],
  )
  assert.equal(unfinished.value.filter(isPaid).length, 2)
})

test('of two writes of the same step one is refused, so that no tab writes over what another has', () => {
  const purchase = begin(TERMS)
  const store = storeOf(purchase)
  const record = recordOf(purchase, { state: 'quoted' })
  assert.equal(store.save({ ...record, revision: 2 }), false, 'there is none')
  assert.equal(store.save(record), true)
  assert.equal(store.save(record), false, 'there is one')
  const paid = { ...record, revision: 2, state: 'paid' } as const
  assert.equal(store.save(paid), true)
  assert.equal(store.save({ ...paid, state: 'quoted' }), false)
  assert.deepEqual(store.load(purchase.idempotencyKey), paid)
})

function stored(changes: Pick<PurchaseRecord, 'state'> & Partial<PurchaseRecord>): Begun {
  const purchase = begin(TERMS)
  storeOf(purchase).save(recordOf(purchase, changes))
  return purchase
}

function recordOf(
  { idempotencyKey }: Begun,
  changes: Pick<PurchaseRecord, 'state'> & Partial<PurchaseRecord>,
): PurchaseRecord {
  return {
    version: 1,
    revision: 1,
    idempotencyKey,
    service: 'https://mayfly.example',
    product: 'catch',
    planId: 'spark',
    requestSha256: '',
    maxSats: 100,
    wallet: null,
    invoices: [{ bolt11: 'lnbc1' } as PurchaseRecord['invoices'][number]],
    ...changes,
  }
}
