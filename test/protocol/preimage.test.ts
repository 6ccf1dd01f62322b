/** BOLT 11: the payment hash is the SHA-256 of the 32 bytes of the preimage. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paymentHashOf, provesPayment } from '../../src/protocol/preimage.ts'

/** Computed with `printf '%064d' 0 | xxd -r -p | sha256sum`. */
const ZERO = '00'.repeat(32)
const HASH_OF_ZERO = '66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925'

test('the payment hash of a preimage is the SHA-256 of its bytes, and the preimage proves it', () => {
  assert.equal(paymentHashOf(ZERO), HASH_OF_ZERO)
  assert.equal(provesPayment(ZERO, HASH_OF_ZERO), true)
  assert.equal(provesPayment('00'.repeat(31).concat('01'), HASH_OF_ZERO), false)
})

test('what is no preimage has no payment hash, and proves nothing', () => {
  for (const text of [
    '',
    '00',
    ZERO.slice(2),
    `${ZERO}00`,
    `${ZERO.slice(2)}0g`,
    'zz'.repeat(32),
  ]) {
    assert.equal(paymentHashOf(text), null, text)
    assert.equal(provesPayment(text, HASH_OF_ZERO), false, text)
    assert.equal(provesPayment(ZERO, text), false, text)
  }
})
