/** What a wallet's answer says of an invoice. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { statusOf } from '../../../src/lightning/nwc/nwc.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'

const NOW = 1_767_225_600_000
const HASH = 'ab'.repeat(32)
const GRACE_MS = 10 * 60_000
const { bolt11, paymentHash, preimage, expiresAt } = createLedger({ now: () => NOW }).make({
  amountMsat: 21_001,
  memo: 'Mayfly',
  expirySeconds: 901,
})

test("a wallet's word on an invoice is its state, and without one the time of settlement with the preimage", () => {
  const settled_at = NOW / 1000
  const open = { state: 'open' }
  const settled = { state: 'settled' }
  const unknown = 'an invoice is in an unknown state'
  const other = 'the wallet answered for another invoice'
  type Row = [answer: Record<string, unknown>, expected: object | string]
  const table: Row[] = [
    [{ state: 'pending' }, open],
    [{ state: 'pending', settled_at: 0 }, open],
    [{ state: 'pending', settled_at: null }, open],
    [{ state: 'pending', preimage }, open],
    [{ state: 'expired' }, open],
    [{ state: 'accepted' }, open],
    [{ state: 'settled' }, settled],
    [{ state: 'settled', type: 'incoming', payment_hash: paymentHash }, settled],
    [{ settled_at, preimage }, settled],
    [{ settled_at: 1, preimage: preimage.toUpperCase() }, settled],
    [{ state: null, settled_at, preimage }, settled],
    [{ state: 'SETTLED', settled_at, preimage }, settled],
    [{ state: 'pending', settled_at: 1 }, 'an invoice is settled and not settled'],
    [{ state: 'expired', settled_at }, 'an invoice is settled and not settled'],
    ...['now', '1700000000', -1].map(
      (at): Row => [{ state: 'pending', settled_at: at }, 'settled_at is not a count'],
    ),
    [{ settled_at }, unknown],
    [{ settled_at, preimage: '' }, unknown],
    [{ settled_at, preimage: HASH }, unknown],
    [{ settled_at, preimage: [preimage] }, unknown],
    [{ preimage }, unknown],
    [{ settled_at: 0, preimage }, unknown],
    ...[undefined, null, 'SETTLED', 'failed', 1].map((state): Row => [{ state }, unknown]),
    [{ state: 'settled', type: 'outgoing' }, other],
    [{ state: 'settled', payment_hash: HASH }, other],
    [{ state: 'settled', payment_hash: null }, other],
  ]
  for (const [answer, expected] of table) {
    const found = (now = NOW) => statusOf(answer, { paymentHash, now })
    if (typeof expected !== 'string') assert.deepEqual(found(), expected, JSON.stringify(answer))
    else {
      const message = `NWC: ${expected}`
      // Nor is it dead, however late.
      for (const now of [NOW, expiresAt + GRACE_MS + 1])
        assert.throws(() => found(now), { name: 'NodeError', reason: 'malformed', message })
    }
  }
})

test('an unpaid invoice of a wallet dies by the expiry that the wallet says, or else by that of the invoice', () => {
  const seconds = expiresAt / 1000
  const last = { paymentHash, now: expiresAt + GRACE_MS }
  const over = { paymentHash, now: expiresAt + GRACE_MS + 1 }
  const cases: Record<string, unknown>[] = [
    { expires_at: seconds },
    { expires_at: seconds, invoice: 'unreadable' },
    { invoice: bolt11 },
    ...[null, 0, -1, 1.5, 2 ** 53, '1'].map((expires_at) => ({ invoice: bolt11, expires_at })),
  ]
  for (const state of ['pending', 'expired']) {
    for (const fields of cases) {
      const found = [last, over].map((at) => statusOf({ state, ...fields }, at))
      const expected = [{ state: 'open' }, { state: 'dead', isFinal: false }]
      assert.deepEqual(found, expected, JSON.stringify(fields))
    }
  }
  // Nobody knows when, or the wallet says that it is later; or the payment is held.
  for (const answer of [
    { state: 'expired' },
    { state: 'pending', invoice: bolt11, expires_at: seconds + 1 },
    { state: 'accepted', invoice: bolt11 },
  ]) {
    assert.deepEqual(statusOf(answer, over), { state: 'open' })
  }
})
