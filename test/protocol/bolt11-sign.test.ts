import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hex, utf8 } from '../../src/lib/bytes.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { encodeInvoice, type InvoiceFields, payeeOf } from '../../src/protocol/bolt11-sign.ts'
import vectors from '../vectors/bolt11.json' with { type: 'json' }
import {
  adversarial,
  bytes,
  described,
  fieldsOf,
  first,
  invalid,
  invoiceOf,
  own,
  withHighS,
} from './bolt11.ts'

for (const vector of vectors.own) {
  test(`an invoice is read, and its payee named: ${vector.name}`, () => {
    const invoice = decodeInvoice(vector.invoice)
    assert.deepEqual(invoice, invoiceOf(vector))
    assert.equal(payeeOf(invoice), vector.payee)
    assert.deepEqual(decodeInvoice(vector.invoice.toUpperCase()), invoice)
  })

  test(`an invoice is written byte for byte: ${vector.name}`, () => {
    assert.equal(encodeInvoice(fieldsOf(vector), bytes(vector.privateKey)), vector.invoice)
  })
}

test('every amount is written in its shortest spelling, and read back', () => {
  const amounts = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
  const round = fc.tuple(fc.integer({ min: 1, max: 90_000 }), fc.integer({ min: 0, max: 11 }))
  const either = fc.oneof(
    amounts,
    round.map(([digits, zeros]) => digits * 10 ** zeros),
  )
  fc.assert(
    fc.property(either, (amountMsat) => {
      const text = encodeInvoice({ ...fieldsOf(first()), amountMsat }, bytes(first().privateKey))
      assert.equal(decodeInvoice(text).amountMsat, amountMsat)
      const pico = `${amountMsat}0`.replace(/(000)+$/, '')
      const [, amount] = /^lnbcrt(\d+)[munp]?1/.exec(text) ?? []
      // The largest unit is a bitcoin, so a multiple of a thousand of those keeps its zeros.
      if (amountMsat % 1e11 !== 0) assert.equal(amount, pico)
      else assert.equal(amount, `${amountMsat / 1e11}`)
    }),
    { numRuns: 300 },
  )
})

test('every invoice that is written is read back, under the key it was written with', () => {
  const times = fc.integer({ min: 1, max: 2 ** 35 - 1 })
  const descriptions = fc.string({ unit: 'grapheme', maxLength: 60 })
  const all = { timestamp: times, expirySeconds: times, description: descriptions }
  const secrets = fc.uint8Array({ minLength: 32, maxLength: 32 })
  fc.assert(
    fc.property(fc.record(all), secrets, ({ timestamp, expirySeconds, description }, secret) => {
      fc.pre(utf8(description).length <= 639)
      const { paymentHash, privateKey, payee } = first()
      const fields = { network: 'regtest', amountMsat: 1, timestamp, expirySeconds } as const
      const more = { paymentHash, paymentSecret: secret, description }
      const invoice = decodeInvoice(encodeInvoice({ ...fields, ...more }, bytes(privateKey)))
      const { signature, recoveryId, signedData, bolt11, ...read } = invoice
      assert.equal(payeeOf(invoice), payee)
      assert.deepEqual(read, {
        ...fields,
        ...more,
        paymentSecret: hex(secret),
        expiresAt: (timestamp + expirySeconds) * 1000,
        descriptionHash: null,
        payee: null,
        features: [8, 14],
        minFinalCltv: 18,
      })
    }),
    { numRuns: 300 },
  )
})

test('encoding writes a description of 639 bytes, and refuses to cut a longer one', () => {
  const key = bytes(first().privateKey)
  const longest = `${'é'.repeat(319)}x`
  const text = encodeInvoice(described(longest), key)
  assert.equal(decodeInvoice(text).description, longest)
  const refused = { name: 'RangeError', message: /^description must be at most 639 bytes/ }
  assert.throws(() => encodeInvoice(described('é'.repeat(320)), key), refused)
})

test('encoding writes the latest time and the longest expiry there are', () => {
  const latest = { timestamp: 2 ** 35 - 1, expirySeconds: 2 ** 35 - 1 }
  const text = encodeInvoice({ ...fieldsOf(first()), ...latest }, bytes(first().privateKey))
  const { timestamp, expirySeconds } = decodeInvoice(text)
  assert.deepEqual({ timestamp, expirySeconds }, latest)
})

test('encoding refuses to write what no reader would take, and names it', () => {
  const key = bytes(first().privateKey)
  const wrong = [
    ...[0, -1, 1.5, Number.NaN, 2 ** 53].map((amountMsat) => ({ amountMsat })),
    ...[0, -1, 1.5, Number.NaN, 2 ** 35].map((timestamp) => ({ timestamp })),
    ...[0, -1, 1.5, Number.NaN, 2 ** 35].map((expirySeconds) => ({ expirySeconds })),
    ...['', 'ab', `${'0'.repeat(63)}x`, '0'.repeat(66)].map((paymentHash) => ({ paymentHash })),
    ...[0, 31, 33].map((length) => ({ paymentSecret: new Uint8Array(length) })),
    { payee: `02${'11'.repeat(32)}` },
    ...['', 'ab', '0'.repeat(66)].map((hash) => ({
      descriptionHash: hash,
      description: undefined,
    })),
  ] as Partial<InvoiceFields>[]
  for (const one of wrong) {
    const fields = { ...fieldsOf(first()), ...one } as InvoiceFields
    const [member = ''] = Object.keys(one)
    const named = { name: 'RangeError', message: new RegExp(`^${member} must be`) }
    assert.throws(() => encodeInvoice(fields, key), named)
  }
})

test('verifying takes a high s where the key is recovered, but not where it is named', () => {
  const recovered = decodeInvoice(own('regtest-21-sat').invoice)
  const named = decodeInvoice(own('regtest-with-n-field').invoice)
  assert.equal(payeeOf(withHighS(recovered)), first().payee)
  assert.throws(() => payeeOf(withHighS(named)), invalid('signature is wrong'))
})

test('verifying refuses a named key that did not sign, or is no point on the curve', () => {
  const named = decodeInvoice(own('regtest-with-n-field').invoice)
  const other = payeeOf(decodeInvoice(adversarial('an amount changed under a recovered key')))
  for (const payee of [other, `02${'00'.repeat(32)}`, `05${'11'.repeat(32)}`, 'ff'.repeat(33)]) {
    assert.throws(() => payeeOf({ ...named, payee }), invalid('signature is wrong'))
  }
})

test('verifying refuses an r or s that is zero or out of range, and a key that cannot be recovered', () => {
  for (const name of ['regtest-21-sat', 'regtest-with-n-field']) {
    const invoice = decodeInvoice(own(name).invoice)
    for (const fill of [0, 255]) {
      for (const start of [0, 32]) {
        const signature = invoice.signature.slice().fill(fill, start, start + 32)
        assert.throws(() => payeeOf({ ...invoice, signature }), invalid('signature is wrong'))
      }
    }
  }
  const invoice = decodeInvoice(own('regtest-21-sat').invoice)
  assert.throws(() => payeeOf({ ...invoice, recoveryId: 2 }), invalid('signature is wrong'))
})
