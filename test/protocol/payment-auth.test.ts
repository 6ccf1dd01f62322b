import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { base64url, utf8 } from '../../src/lib/bytes.ts'
import {
  CHARGE_INTENT,
  type ChargeRequest,
  contentDigest,
  decodeChargeRequest,
  decodeReceipt,
  encodeChargeRequest,
  encodeReceipt,
  type IssuedChallenge,
  isEcho,
  LIGHTNING_METHOD,
  MAX_CREDENTIAL_CHARS,
  MAX_REQUEST_CHARS,
  PAYMENT_PROBLEMS,
  type PaymentChallenge,
  type PaymentCredential,
  paymentChallengeField,
  type Receipt,
  readPaymentCredential,
} from '../../src/protocol/payment-auth.ts'
import { challengeId, isOwnChallenge } from '../../src/protocol/payment-challenge-id.ts'
import { fieldLines, mutated } from '../support/arbitraries.ts'
import { paymentAuthorization } from '../support/payer.ts'
import { vectors } from '../support/vectors.ts'

type Issued = PaymentChallenge & { expires: string }
/** Other members of a challenge. Null takes one away. */
type Changes = Record<string, string | null>

const V = vectors<{
  secret: string
  body: string
  contentDigest: string
  preimage: string
  paymentHash: string
  /** Of each challenge that has no other. */
  request: ChargeRequest
  challenges: {
    note: string
    request?: ChargeRequest
    challenge: PaymentChallenge
    field: string | null
    canonical: string
    inserted: string
  }[]
  requests: { note: string; encoded: string; request: ChargeRequest | null }[]
  /** What most credentials say, and what was issued. The others say in what theirs differ. */
  credential: PaymentCredential & { challenge: Issued }
  credentials: {
    note: string
    authorization: string | string[]
    reading: { challenge?: Changes; payload?: { preimage: string } } | 'none' | 'malformed'
    issued?: Changes
    isEcho?: boolean
  }[]
  receipts: { note: string; value: string; canonical?: true; receipt: Receipt | null }[]
}>('payment-auth')

const secret = utf8(V.secret)
const changed = (changes: Changes = {}): Issued =>
  Object.fromEntries(
    Object.entries({ ...V.credential.challenge, ...changes }).filter(([, value]) => value !== null),
  ) as Issued
const otherSecret = utf8('another-secret-of-32-bytes-or-more')

describe('a challenge', () => {
  for (const row of V.challenges) {
    const { note, request = V.request, challenge, field, canonical, inserted } = row
    const { id, ...fields } = challenge
    const credential = { challenge, payload: { preimage: V.preimage } }

    test(`a challenge has the id of its fields: ${note}`, () => {
      assert.equal(challengeId(secret, fields), id)
      assert.equal(isOwnChallenge([secret], challenge), true)
      assert.equal(isOwnChallenge([otherSecret, secret], challenge), true)
      assert.equal(isOwnChallenge([otherSecret], challenge), false)
      assert.equal(isOwnChallenge([], challenge), false)
    })

    test(`a challenge carries its request as canonical JSON: ${note}`, () => {
      assert.equal(encodeChargeRequest(request), challenge.request)
      assert.deepEqual(decodeChargeRequest(challenge.request), request)
    })

    test(`a challenge is echoed by a credential: ${note}`, () => {
      assert.deepEqual(readPaymentCredential([canonical]), credential)
      assert.deepEqual(readPaymentCredential([inserted]), credential)
    })

    if (field !== null) {
      test(`a challenge is rendered in one line without escapes: ${note}`, () => {
        assert.equal(paymentChallengeField(challenge as IssuedChallenge), field)
      })
    }
  }

  test('a challenge holds no pipe, which would pass one field off as two', () => {
    const fields = { realm: 'a|b', method: 'lightning', intent: 'charge', request: 'e30' }
    assert.throws(() => challengeId(secret, fields), TypeError)
    assert.equal(isOwnChallenge([secret], { id: 'x', ...fields }), false)
  })

  test('a challenge is never signed with a short secret', () => {
    const { id: _, ...fields } = V.challenges[0]?.challenge ?? assert.fail()
    assert.throws(() => challengeId(secret.subarray(0, 31), fields), TypeError)
    assert.equal(challengeId(secret.subarray(0, 32), fields).length, 43)
  })
})

describe('a request object', () => {
  for (const { note, encoded, request } of V.requests) {
    test(`a request object is ${request === null ? 'refused' : 'read'}: ${note}`, () =>
      assert.deepEqual(decodeChargeRequest(encoded), request))
  }
  test('a request object is read up to the length that others read, and refused beyond', () => {
    const bare = encodeChargeRequest({ ...V.request, description: '' })
    const withLength = (chars: number) => {
      const bytes = Math.floor((chars * 3) / 4) - Math.floor((bare.length * 3) / 4)
      return { ...V.request, description: 'x'.repeat(bytes) }
    }
    const longest = withLength(MAX_REQUEST_CHARS)
    assert.equal(encodeChargeRequest(longest).length, MAX_REQUEST_CHARS)
    assert.deepEqual(decodeChargeRequest(encodeChargeRequest(longest)), longest)
    const longer = withLength(MAX_REQUEST_CHARS + 2)
    assert.equal(decodeChargeRequest(encodeChargeRequest(longer)), null)
  })
})

describe('a credential', () => {
  for (const { note, authorization, reading, issued, isEcho: echoes } of V.credentials) {
    const outcome = typeof reading === 'string' ? reading : 'ok'
    test(`a credential is read as ${outcome}: ${note}`, () => {
      const actual = readPaymentCredential([authorization].flat())
      if (typeof reading === 'string') return assert.equal(actual, reading)
      const { challenge, payload = V.credential.payload } = reading
      assert.deepEqual(actual, { challenge: changed(challenge), payload })
      if (echoes !== undefined) {
        assert.ok(typeof actual === 'object')
        assert.equal(isEcho(actual, changed(issued)), echoes)
      }
    })
  }

  test('a credential is read up to 64 KiB, and refused beyond', () => {
    const { challenge } = V.challenges[0] ?? assert.fail()
    const withOpaque = (length: number) => {
      const opaque = 'x'.repeat(length)
      return { challenge: { ...challenge, opaque }, payload: { preimage: V.preimage } }
    }
    const bytes = Math.floor(((MAX_CREDENTIAL_CHARS - 'Payment '.length) * 3) / 4)
    const longest = withOpaque(bytes - JSON.stringify(withOpaque(0)).length)
    const line = paymentAuthorization(longest)
    assert.equal(line.length, MAX_CREDENTIAL_CHARS)
    assert.deepEqual(readPaymentCredential([line]), longest)
    assert.equal(readPaymentCredential([`${line} `]), 'malformed')
  })

  test('a credential that nests as deep as it can is refused, not a crash', () => {
    for (const open of ['[', '{"a":']) {
      const line = `Payment ${base64url(utf8(open.repeat(8000)))}`
      assert.equal(readPaymentCredential([line]), 'malformed')
      const nested = `{"challenge":${'['.repeat(20000)}${']'.repeat(20000)}}`
      assert.equal(readPaymentCredential([`Payment ${base64url(utf8(nested))}`]), 'malformed')
    }
  })
})

describe('a receipt', () => {
  for (const { note, value, canonical, receipt } of V.receipts) {
    test(`a receipt is ${receipt === null ? 'refused' : 'read'}: ${note}`, () => {
      assert.deepEqual(decodeReceipt(value), receipt)
      if (canonical && receipt !== null) assert.equal(encodeReceipt(receipt), value)
    })
  }
  test('a receipt carries its five members and nothing that the caller had beside them', () => {
    const [{ receipt } = assert.fail()] = V.receipts
    assert.ok(receipt)
    const more = { ...receipt, preimage: V.preimage }
    assert.equal(encodeReceipt(more), V.receipts[0]?.value)
  })
})

test('a body digest is the RFC 9530 item of the raw bytes', () => {
  const sha256 = new Uint8Array(createHash('sha256').update(V.body).digest())
  assert.equal(contentDigest(sha256), V.contentDigest)
  assert.throws(() => contentDigest(sha256.subarray(1)), TypeError)
})

test('a challenge of ours names the method and the intent of the draft', () => {
  const { challenge } = V.challenges.find((row) => row.field) ?? assert.fail()
  const { method, intent } = challenge
  assert.deepEqual([LIGHTNING_METHOD, CHARGE_INTENT], [method, intent])
})

test('problem types are the URIs of the draft', () => {
  const base = 'https://paymentauth.org/problems'
  assert.deepEqual(PAYMENT_PROBLEMS, {
    'payment-required': { type: `${base}/payment-required`, title: 'Payment Required' },
    'malformed-credential': {
      type: `${base}/malformed-credential`,
      title: 'Malformed Credential',
      lightningType: `${base}/lightning/malformed-credential`,
    },
    'invalid-challenge': {
      type: `${base}/invalid-challenge`,
      title: 'Invalid Challenge',
      lightningType: `${base}/lightning/unknown-challenge`,
    },
    'payment-expired': {
      type: `${base}/payment-expired`,
      title: 'Payment Expired',
      lightningType: `${base}/lightning/expired-invoice`,
    },
    'verification-failed': {
      type: `${base}/verification-failed`,
      title: 'Verification Failed',
      lightningType: `${base}/lightning/invalid-preimage`,
    },
  })
})

describe('any input', () => {
  const { challenge, canonical } = V.challenges.find((row) => row.field) ?? assert.fail()
  const issued = challenge as Issued
  const json = Buffer.from(canonical.slice('Payment '.length), 'base64url').toString()
  const nearLine = mutated(canonical).map((line) => [line])
  const nearJson = mutated(json).map((text) => [`Payment ${base64url(utf8(text))}`])
  const anyJson = fc.json().map((text) => base64url(utf8(text)))
  const anyCredential = anyJson.map((encoded) => [`Payment ${encoded}`])
  const any = fc.oneof(fc.string({ unit: 'binary' }), anyJson)

  test('any input as credential is read or refused, and what is read can be written and read again', () => {
    fc.assert(
      fc.property(fc.oneof(fieldLines, nearLine, nearJson, anyCredential), (lines) => {
        const reading = readPaymentCredential(lines)
        if (typeof reading === 'string') return
        assert.deepEqual(readPaymentCredential([paymentAuthorization(reading)]), reading)
        isOwnChallenge([secret], reading.challenge)
      }),
      { numRuns: 10_000 },
    )
  })

  test('any input as credential passes only with the issued values', () => {
    fc.assert(
      fc.property(fc.oneof(nearLine, nearJson), (lines) => {
        const reading = readPaymentCredential(lines)
        if (typeof reading === 'string') return
        const passes = isEcho(reading, issued)
        const merged: PaymentChallenge = { ...issued, ...reading.challenge }
        assert.equal(passes, isSame(merged, issued) && 'expires' in reading.challenge)
      }),
      { numRuns: 10_000 },
    )
  })

  test('any input as request object is read or refused, and what is read can be written and read again', () => {
    const request = JSON.stringify(V.request)
    const near = mutated(request).map((text) => base64url(utf8(text)))
    fc.assert(
      fc.property(fc.oneof(near, any), (encoded) => {
        const decoded = decodeChargeRequest(encoded)
        if (decoded === null) return
        assert.deepEqual(decodeChargeRequest(encodeChargeRequest(decoded)), decoded)
      }),
      { numRuns: 10_000 },
    )
  })

  test('any input as receipt is read or refused, and what is read can be written and read again', () => {
    const [{ receipt, value } = assert.fail()] = V.receipts
    const near = mutated(JSON.stringify(receipt)).map((text) => base64url(utf8(text)))
    fc.assert(
      fc.property(fc.oneof(near, mutated(value), any), (encoded) => {
        const decoded = decodeReceipt(encoded)
        if (decoded === null) return
        assert.deepEqual(decodeReceipt(encodeReceipt(decoded)), decoded)
      }),
      { numRuns: 10_000 },
    )
  })
})

function isSame(a: PaymentChallenge, b: PaymentChallenge): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof PaymentChallenge>
  return [...names].every((name) => a[name] === b[name])
}
