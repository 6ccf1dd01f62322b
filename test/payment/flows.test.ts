/**
 * What a challenge of the wallet flows binds, where no request shows it. What it says and what becomes of its
 * credential is in test/api/payment-auth.test.ts and l402.test.ts.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { Binding } from '../../src/payment/flows/flow.ts'
import { createL402Flow } from '../../src/payment/flows/l402.ts'
import { createPaymentFlow } from '../../src/payment/flows/payment-auth.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { MAX_ROUTE_BYTES } from '../../src/protocol/l402-token.ts'
import type { PaymentChallenge } from '../../src/protocol/payment-auth.ts'
import {
  l402Authorization,
  l402Challenges,
  paymentAuthorization,
  paymentChallenges,
} from '../support/payer.ts'
import { manualClock } from '../support/shop.ts'

const KEY = new Uint8Array(32).fill(1)
const PREIMAGE = 'c0'.repeat(32)
const WRONG_PREIMAGE = 'c1'.repeat(32)
const PAYMENT_HASH = createHash('sha256').update(Buffer.from(PREIMAGE, 'hex')).digest('hex')
const MISMATCHED = { kind: 'mismatched', paymentHash: PAYMENT_HASH }

const clock = manualClock()
const publicUrl = () => 'https://mayfly.example:8443'
const l402 = createL402Flow({ keys: [KEY], publicUrl, clock })
const payment = createPaymentFlow({ keys: [KEY], publicUrl })

const QUOTE: Quote = {
  orderId: 'order_aaaaaaaaaaaaaaaaaaaaaa',
  product: 'catch',
  planId: 'spark',
  amountSats: 100,
  bolt11: 'lnbcrt1invoice',
  paymentHash: PAYMENT_HASH,
  expiresAt: clock.now(),
  network: 'regtest',
  memo: 'Mayfly CATCH spark',
  durationSeconds: 60,
}

const BINDING: Binding = {
  product: 'catch',
  method: 'POST',
  target: '/api/payments/catch?plan=spark',
  bodySha256: 'ab'.repeat(32),
}

function challengeFor(binding: Binding, flow = payment): PaymentChallenge {
  const { field } = flow.challenge(QUOTE, binding, 'payment-required')
  return paymentChallenges([field])[0] ?? assert.fail()
}

const paying = (challenge: PaymentChallenge, preimage = PREIMAGE): string =>
  paymentAuthorization({ challenge, payload: { preimage } })

/** Requests that a credential of `BINDING` was not made for. */
const OTHER_REQUESTS: Record<string, Partial<Binding>> = {
  'another method': { method: 'PUT' },
  'another target': { target: '/api/payments/catch' },
  'another body': { bodySha256: 'cd'.repeat(32) },
}
for (const [name, other] of Object.entries(OTHER_REQUESTS)) {
  test(`a right credential for another request is mismatched: ${name}`, () => {
    const { field } = l402.challenge(QUOTE, { ...BINDING, ...other }, 'payment required')
    const [{ macaroon } = assert.fail()] = l402Challenges([field])
    const authorization = l402Authorization({ macaroon, preimage: PREIMAGE })
    assert.deepEqual(l402.read([authorization], BINDING), MISMATCHED)
    const challenge = challengeFor({ ...BINDING, ...other })
    assert.deepEqual(payment.read([paying(challenge)], BINDING), MISMATCHED)
  })
}

test('a target is bound up to the length that a macaroon takes, counted in bytes', () => {
  assert.equal(l402.canBind('/'.repeat(MAX_ROUTE_BYTES)), true)
  assert.equal(l402.canBind('é'.repeat(MAX_ROUTE_BYTES / 2 + 1)), false)
})

test('a payer may leave out the digest of a request, and then sends the body that was challenged', () => {
  const { digest, ...rest } = challengeFor(BINDING)
  assert.ok(digest)
  assert.equal(payment.read([paying(rest)], BINDING).kind, 'verified')
  const other = { ...BINDING, bodySha256: 'cd'.repeat(32) }
  assert.deepEqual(payment.read([paying(rest)], other), MISMATCHED)
})

test('a challenge with another digest, or with a description, which we never give, is mismatched at best', () => {
  const challenge = challengeFor(BINDING)
  for (const change of [{ description: 'for you' }, { digest: 'sha-256=:AAAA:' }]) {
    const changed = { ...challenge, ...change }
    assert.deepEqual(payment.read([paying(changed)], BINDING), MISMATCHED)
    const unpaid = payment.read([paying(changed, WRONG_PREIMAGE)], BINDING)
    assert.deepEqual(unpaid, { kind: 'invalid', reason: 'invalid-challenge', paymentHash: null })
  }
})

test('the realm follows the public address', () => {
  let url = 'http://localhost:1'
  const moving = createPaymentFlow({ keys: [KEY], publicUrl: () => url })
  assert.equal(moving.bare(), 'Payment realm="localhost"')
  url = 'https://mayfly.example'
  assert.equal(moving.bare(), 'Payment realm="mayfly.example"')
})
