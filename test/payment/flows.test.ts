/** The two wallet flows: what a challenge binds, and what its credential is taken for. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { suite, test } from 'node:test'
import { type Binding, EMPTY_SHA256 } from '../../src/payment/flows/flow.ts'
import { createL402Flow } from '../../src/payment/flows/l402.ts'
import { renderOffer, renderPending, renderQuote } from '../../src/payment/flows/native.ts'
import { createPaymentFlow } from '../../src/payment/flows/payment-auth.ts'
import type { Quote } from '../../src/payment/quote.ts'
import { MAX_ROUTE_BYTES } from '../../src/protocol/l402-token.ts'
import {
  decodeChargeRequest,
  decodeReceipt,
  encodeChargeRequest,
  type PaymentChallenge,
  type PaymentProblem,
} from '../../src/protocol/payment-auth.ts'
import {
  l402Authorization,
  l402Challenges,
  paymentAuthorization,
  paymentChallenges,
} from '../support/payer.ts'
import { DAY, manualClock, SECOND } from '../support/shop.ts'

const [KEY, FOREIGN_KEY] = [1, 3].map((byte) => new Uint8Array(32).fill(byte)) as [
  Uint8Array,
  Uint8Array,
]
const PUBLIC_URL = 'https://mayfly.example:8443'
const PREIMAGE = 'c0'.repeat(32)
const WRONG_PREIMAGE = 'c1'.repeat(32)
const PAYMENT_HASH = createHash('sha256').update(Buffer.from(PREIMAGE, 'hex')).digest('hex')
const NOW = Date.UTC(2026, 0, 2, 3, 4, 5)
const GRACE_DAYS = 31

const QUOTE: Quote = {
  orderId: 'order_aaaaaaaaaaaaaaaaaaaaaa',
  product: 'catch',
  planId: 'spark',
  amountSats: 100,
  bolt11: 'lnbcrt1invoice',
  paymentHash: PAYMENT_HASH,
  expiresAt: NOW + 900 * SECOND,
  network: 'regtest',
  memo: 'Mayfly CATCH spark',
  durationSeconds: (7 * DAY) / SECOND,
}
const EXPIRES = '2026-01-02T03:19:05Z'

const BINDING: Binding = {
  product: 'catch',
  method: 'POST',
  target: '/api/payments/catch?plan=spark',
  bodySha256: 'ab'.repeat(32),
}
const ONE_URL: Binding = { ...BINDING, bodySha256: EMPTY_SHA256, isOneUrl: true }

/** Requests that a credential of `BINDING` was not made for. */
const OTHER_REQUESTS: Record<string, Partial<Binding>> = {
  'another method': { method: 'PUT' },
  'another target': { target: '/api/payments/catch' },
  'another body': { bodySha256: 'cd'.repeat(32) },
}

const facts = (quote: Quote) => ({
  orderId: quote.orderId,
  product: 'catch',
  planId: 'spark',
  amountSats: 100,
  priceSats: 100,
  bolt11: 'lnbcrt1invoice',
  paymentHash: PAYMENT_HASH,
  expiresAt: EXPIRES,
  network: 'regtest',
})
const OFFERED = {
  product: 'catch',
  planId: 'spark',
  amountSats: 100,
  priceSats: 100,
  paymentHash: PAYMENT_HASH,
  expiresAt: EXPIRES,
  network: 'regtest',
}

suite('the native flow', () => {
  test('a quote shows all that it takes to pay and to poll, and a purchase of one URL nothing to poll', () => {
    assert.deepEqual(renderQuote(QUOTE), facts(QUOTE))
    assert.deepEqual(renderOffer(QUOTE), OFFERED)
    assert.deepEqual(renderPending(QUOTE), { settled: false, expiresAt: EXPIRES })
  })

  test('a quote and its poll say when the key alone will not be enough', () => {
    const contested: Quote = { ...QUOTE, proofRequired: true }
    assert.equal(renderQuote(contested).proofRequired, true)
    assert.equal(renderPending(contested).proofRequired, true)
  })
})

suite('the flow of L402', () => {
  const clock = manualClock(NOW)
  const flowOf = (...keys: [Uint8Array, ...Uint8Array[]]) =>
    createL402Flow({ keys, publicUrl: () => PUBLIC_URL, clock })
  const flow = flowOf(KEY)

  function credentialFor(binding: Binding, preimage = PREIMAGE, at = flow): string {
    const { field } = at.challenge(QUOTE, binding, 'payment required')
    const [challenge] = l402Challenges([field])
    assert.ok(challenge)
    return l402Authorization({ macaroon: challenge.macaroon, preimage })
  }

  test('a challenge shows the same macaroon in its field and in its body, beside the quote and the error', () => {
    const { field, body } = flow.challenge(QUOTE, BINDING, 'payment required')
    const [challenge] = l402Challenges([field])
    assert.deepEqual(challenge, { macaroon: body.macaroon, invoice: QUOTE.bolt11 })
    assert.deepEqual(body, {
      error: 'payment required',
      scheme: 'L402',
      macaroon: body.macaroon,
      invoice: QUOTE.bolt11,
      ...facts(QUOTE),
    })
    assert.deepEqual(
      flow.challenge(QUOTE, BINDING, 'payment required'),
      { field, body },
      'the same macaroon each time',
    )
    const offer = flow.challenge(QUOTE, ONE_URL, 'invalid L402 credential').body
    assert.deepEqual(offer, {
      error: 'invalid L402 credential',
      scheme: 'L402',
      macaroon: offer.macaroon,
      invoice: QUOTE.bolt11,
      ...OFFERED,
    })
    const text = Buffer.from(offer.macaroon, 'base64').toString('latin1')
    assert.ok(text.includes('one-url') && !text.includes(QUOTE.orderId), 'nobody is told the id')
  })

  test('a right credential is verified, and names its payment', () => {
    for (const binding of [BINDING, ONE_URL]) {
      assert.deepEqual(flow.read([credentialFor(binding)], binding), {
        kind: 'verified',
        paymentHash: PAYMENT_HASH,
        challengeId: '',
      })
    }
  })

  for (const [name, other] of Object.entries({
    ...OTHER_REQUESTS,
    'another product': { product: 'pulse' as const },
  })) {
    test(`a right credential for another request is mismatched: ${name}`, () => {
      const read = flow.read([credentialFor({ ...BINDING, ...other })], BINDING)
      assert.deepEqual(read, { kind: 'mismatched', paymentHash: PAYMENT_HASH })
    })
  }

  test('a credential that proves nothing is invalid, and names a payment hash only if we minted it', () => {
    const invalid = (paymentHash: string | null) => ({
      kind: 'invalid',
      reason: 'invalid L402 credential',
      paymentHash,
    })
    const wrong = credentialFor(BINDING, WRONG_PREIMAGE)
    assert.deepEqual(flow.read([wrong], BINDING), invalid(PAYMENT_HASH))
    const forged = credentialFor(BINDING, PREIMAGE, flowOf(FOREIGN_KEY))
    assert.deepEqual(flow.read([forged], BINDING), invalid(null))
    assert.deepEqual(flow.read(['L402 nothing'], BINDING), invalid(null))
  })

  test('without a credential of L402 there is none', () => {
    for (const lines of [[], ['Payment abc'], ['Bearer abc']])
      assert.deepEqual(flow.read(lines, BINDING), { kind: 'none' })
  })

  test('a credential lasts until a month after the capability that it buys, and no longer', () => {
    const late = manualClock(NOW)
    const aged = createL402Flow({ keys: [KEY], publicUrl: () => PUBLIC_URL, clock: late })
    const credential = credentialFor(BINDING)
    const ends = QUOTE.expiresAt + QUOTE.durationSeconds * SECOND + GRACE_DAYS * DAY
    late.advance(ends - NOW - SECOND)
    assert.equal(aged.read([credential], BINDING).kind, 'verified')
    late.advance(2 * SECOND)
    assert.deepEqual(aged.read([credential], BINDING).kind, 'mismatched')
  })

  test('a target is bound up to the length that a macaroon takes, counted in bytes', () => {
    const { canBind } = flowOf(KEY)
    assert.equal(canBind('/'.repeat(MAX_ROUTE_BYTES)), true)
    assert.equal(canBind('/'.repeat(MAX_ROUTE_BYTES + 1)), false)
    assert.equal(canBind('é'.repeat(MAX_ROUTE_BYTES / 2 + 1)), false)
  })

  test('a bare challenge names the realm alone', () => {
    assert.equal(flowOf(KEY).bare(), 'L402 realm="mayfly.example"')
  })
})

suite('the flow of Payment', () => {
  const flowOf = (...keys: [Uint8Array, ...Uint8Array[]]) =>
    createPaymentFlow({ keys, publicUrl: () => PUBLIC_URL })
  const flow = flowOf(KEY)

  function challengeFor(binding: Binding, at = flow): PaymentChallenge {
    const { field } = at.challenge(QUOTE, binding, 'payment-required')
    const [challenge] = paymentChallenges([field])
    assert.ok(challenge)
    return challenge
  }

  const paying = (challenge: PaymentChallenge, preimage = PREIMAGE): string =>
    paymentAuthorization({ challenge, payload: { preimage } })

  const invalid = (reason: PaymentProblem, paymentHash: string | null = null) => ({
    kind: 'invalid',
    reason,
    paymentHash,
  })

  test('a challenge asks for the price of the order, to its invoice, until its quote ends', () => {
    const challenge = challengeFor(BINDING)
    const { id, request, ...fields } = challenge
    assert.match(id, /^[A-Za-z0-9_-]{43}$/)
    assert.deepEqual(fields, {
      realm: 'mayfly.example',
      method: 'lightning',
      intent: 'charge',
      expires: EXPIRES,
      digest: `sha-256=:${Buffer.from(BINDING.bodySha256, 'hex').toString('base64')}:`,
    })
    assert.deepEqual(decodeChargeRequest(request), {
      amount: '100',
      currency: 'sat',
      description: QUOTE.memo,
      methodDetails: { invoice: QUOTE.bolt11, network: 'regtest', paymentHash: PAYMENT_HASH },
    })
    assert.equal('digest' in challengeFor(ONE_URL), false)
    assert.ok('digest' in challengeFor({ ...BINDING, isOneUrl: true }))
  })

  test('the body of a challenge repeats it, says what was wrong, and shows the quote', () => {
    const shown = (problem: PaymentProblem, binding = BINDING) =>
      flow.challenge(QUOTE, binding, problem).body as Record<string, unknown>
    const challenge = challengeFor(BINDING)
    const { type, title, ...body } = shown('payment-required')
    assert.match(String(type), /payment-required$/)
    assert.match(String(title), /\w/)
    assert.deepEqual(body, {
      status: 402,
      detail: 'Pay the invoice and repeat the identical request with the credential.',
      error: 'payment required',
      challengeId: challenge.id,
      challenge,
      request: decodeChargeRequest(challenge.request),
      ...facts(QUOTE),
    })
    for (const problem of [
      ...(['malformed-credential', 'invalid-challenge', 'payment-expired'] as const),
      'verification-failed' as const,
    ]) {
      const wrong = shown(problem)
      assert.equal(wrong.error, 'invalid payment credential')
      assert.match(String(wrong.type), new RegExp(`${problem}$`))
      assert.match(String(wrong.detail), /^[A-Z].*\.$/)
    }
    const offer = shown('payment-required', ONE_URL)
    assert.equal(offer.planId, 'spark')
    assert.deepEqual(['orderId' in offer, 'bolt11' in offer], [false, false])
  })

  test('a right credential is verified and names its challenge', () => {
    for (const binding of [BINDING, ONE_URL]) {
      const challenge = challengeFor(binding)
      assert.deepEqual(flow.read([paying(challenge)], binding), {
        kind: 'verified',
        paymentHash: PAYMENT_HASH,
        challengeId: challenge.id,
      })
    }
  })

  test('a payer may leave out the digest of a request, and then sends the body that was challenged', () => {
    const { digest, ...rest } = challengeFor(BINDING)
    assert.ok(digest)
    assert.equal(flow.read([paying(rest)], BINDING).kind, 'verified')
    const other = flow.read([paying(rest)], { ...BINDING, bodySha256: 'cd'.repeat(32) })
    assert.deepEqual(other, { kind: 'mismatched', paymentHash: PAYMENT_HASH })
  })

  for (const [name, other] of Object.entries(OTHER_REQUESTS)) {
    test(`a credential for another request is mismatched if it is paid, and else invalid: ${name}`, () => {
      const challenge = challengeFor({ ...BINDING, ...other })
      assert.deepEqual(flow.read([paying(challenge)], BINDING), {
        kind: 'mismatched',
        paymentHash: PAYMENT_HASH,
      })
      const unpaid = flow.read([paying(challenge, WRONG_PREIMAGE)], BINDING)
      assert.deepEqual(unpaid, invalid('invalid-challenge'))
    })
  }

  test('a challenge that we did not issue, or that was changed, is mismatched at best', () => {
    const challenge = challengeFor(BINDING)
    const changed: Record<string, PaymentChallenge> = {
      'another key': challengeFor(BINDING, flowOf(FOREIGN_KEY)),
      'another time': { ...challenge, expires: '2027-01-02T03:19:05Z' },
      'a description': { ...challenge, description: 'for you' },
      'another digest': { ...challenge, digest: 'sha-256=:AAAA:' },
    }
    for (const [name, one] of Object.entries(changed)) {
      assert.equal(flow.read([paying(one)], BINDING).kind, 'mismatched', name)
      const unpaid = flow.read([paying(one, WRONG_PREIMAGE)], BINDING)
      assert.deepEqual(unpaid, invalid('invalid-challenge'), name)
    }
    const cheaper = decodeChargeRequest(challenge.request)
    assert.ok(cheaper)
    const request = encodeChargeRequest({ ...cheaper, amount: '1' })
    assert.equal(flow.read([paying({ ...challenge, request })], BINDING).kind, 'mismatched')
    const nothing = { ...challenge, request: 'bm90aGluZw' }
    assert.deepEqual(flow.read([paying(nothing)], BINDING), invalid('invalid-challenge'))
  })

  test('a wrong preimage and an unreadable credential are invalid, and no credential is none', () => {
    const wrong = paying(challengeFor(BINDING), WRONG_PREIMAGE)
    assert.deepEqual(flow.read([wrong], BINDING), invalid('verification-failed', PAYMENT_HASH))
    assert.deepEqual(flow.read(['Payment ???'], BINDING), invalid('malformed-credential'))
    for (const lines of [[], ['L402 abc:def']])
      assert.deepEqual(flow.read(lines, BINDING), { kind: 'none' })
  })

  test('the realm follows the public address', () => {
    let url = 'http://localhost:1'
    const moving = createPaymentFlow({ keys: [KEY], publicUrl: () => url })
    assert.equal(moving.bare(), 'Payment realm="localhost"')
    url = 'https://mayfly.example'
    assert.equal(moving.bare(), 'Payment realm="mayfly.example"')
    assert.equal(challengeFor(BINDING, moving).realm, 'mayfly.example')
  })

  test('a receipt says what was paid and when', () => {
    const receipt = flowOf(KEY).receipt({
      challengeId: 'a challenge',
      paymentHash: PAYMENT_HASH,
      settledAt: NOW,
    })
    assert.deepEqual(decodeReceipt(receipt), {
      challengeId: 'a challenge',
      method: 'lightning',
      reference: PAYMENT_HASH,
      status: 'success',
      timestamp: '2026-01-02T03:04:05Z',
    })
  })
})
