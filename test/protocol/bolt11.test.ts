import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { bytesToWords, encodeBech32 } from '../../src/protocol/bech32.ts'
import { decodeInvoice, InvalidInvoice, TAG } from '../../src/protocol/bolt11.ts'
import { payeeOf } from '../../src/protocol/bolt11-sign.ts'
import vectors from '../vectors/bolt11.json' with { type: 'json' }
import {
  aText,
  D,
  type Field,
  featureField,
  H,
  HASH,
  invalid,
  N,
  P,
  parts,
  payeeOrNull,
  readsOrRefuses,
  refuses,
  S,
  SIGNATURE_WORDS,
} from './bolt11.ts'

for (const vector of vectors.adversarial) {
  test(`an invoice that could mislead is judged right: ${vector.name}`, () => {
    if (vector.outcome === 'refused') return refuses(vector.invoice, vector.reason)
    const invoice = decodeInvoice(vector.invoice)
    if (vector.outcome === 'unsigned') {
      return assert.throws(() => payeeOf(invoice), invalid(vector.reason))
    }
    assert.equal(invoice.amountMsat, vector.amountMsat)
    assert.equal(invoice.paymentHash, vector.paymentHash)
    assert.equal(invoice.expirySeconds, vector.expirySeconds)
    if (vector.payee) assert.equal(payeeOf(invoice), vector.payee)
    if (vector.notPayee) assert.notEqual(payeeOf(invoice), vector.notPayee)
  })
}

test('decoding refuses an invoice without a required field, or with both forms of its description', () => {
  refuses(aText({ fields: [S, D] }), 'no payment hash')
  refuses(aText({ fields: [P, D] }), 'no payment secret')
  for (const descriptions of [[], [D, H], [H, [TAG.description, []]]] as Field[][]) {
    const fields = [P, S, ...descriptions]
    refuses(aText({ fields }), 'not exactly one of description and description hash')
  }
})

test('decoding refuses any field that we read when it is there twice', () => {
  const x: Field = [TAG.expiry, [1]]
  const c: Field = [TAG.minFinalCltv, [18]]
  const features: Field = [TAG.features, [16, 8, 0]]
  for (const twice of [P, S, D, N, x, c, features]) {
    const others = [P, S, D].filter((field) => field !== twice)
    refuses(aText({ fields: [...others, twice, twice] }), 'a field is there twice')
  }
  refuses(aText({ fields: [P, S, H, H] }), 'a field is there twice')
})

test('decoding refuses a hash, secret or key of another length, or with its filling bits set, instead of skipping it', () => {
  for (const [tag, words] of [P, S, H, N]) {
    const others = [P, S, tag === TAG.descriptionHash ? H : D].filter(([other]) => other !== tag)
    for (const length of [0, words.length - 1, words.length + 1]) {
      const resized = Uint8Array.from({ length }, (_, i) => words[i] ?? 0)
      refuses(aText({ fields: [...others, [tag, resized]] }), 'a field has the wrong length')
    }
  }
  const filled: Field = [TAG.paymentHash, HASH.with(51, 1)]
  refuses(aText({ fields: [filled, S, D] }), 'a field has the wrong length')
})

test('decoding refuses a number with a leading zero, of zero words, or beyond 35 bits', () => {
  for (const tag of [TAG.expiry, TAG.minFinalCltv]) {
    for (const words of [[], [0], [0, 1]]) {
      refuses(aText({ fields: [P, S, D, [tag, words]] }), 'a number is not in its shortest form')
    }
    const wide = [1, 0, 0, 0, 0, 0, 0, 0]
    refuses(aText({ fields: [P, S, D, [tag, wide]] }), 'a number is too large')
  }
  for (const words of [[], [0, 16, 8, 0]]) {
    const features: Field = [TAG.features, words]
    refuses(aText({ fields: [P, S, D, features] }), 'a number is not in its shortest form')
  }
})

test('decoding reads the longest expiry that fits, as an instant that a date can show', () => {
  const seven = [31, 31, 31, 31, 31, 31, 31]
  const invoice = decodeInvoice(aText({ timestamp: seven, fields: [P, S, D, [TAG.expiry, seven]] }))
  assert.equal(invoice.timestamp, 2 ** 35 - 1)
  assert.equal(invoice.expirySeconds, 2 ** 35 - 1)
  assert.equal(new Date(invoice.expiresAt).getTime(), (2 ** 36 - 2) * 1000)
})

test('decoding reads what is left out as 3600 seconds, 18 blocks and no features', () => {
  const invoice = decodeInvoice(aText({ fields: [P, S, D] }))
  assert.equal(invoice.expirySeconds, 3600)
  assert.equal(invoice.expiresAt, (invoice.timestamp + 3600) * 1000)
  assert.equal(invoice.minFinalCltv, 18)
  assert.deepEqual(invoice.features, [])
})

test('decoding reads a number of several words, the first of which is the greatest', () => {
  const fields: Field[] = [P, S, D, [TAG.minFinalCltv, [4, 16]], [TAG.expiry, [2, 22, 11]]]
  const invoice = decodeInvoice(aText({ fields }))
  assert.equal(invoice.minFinalCltv, 144)
  assert.equal(invoice.expirySeconds, 2763)
})

test('decoding refuses a required feature that it does not know, and ignores an optional one', () => {
  for (const bit of [0, 2, 10, 12, 18, 22, 26, 46, 50, 100]) {
    refuses(aText({ fields: [P, S, D, featureField(bit)] }), 'a required feature is unknown')
  }
  for (const bit of [8, 14, 16, 24, 48, 9, 15, 17, 49, 99, 1001]) {
    const invoice = decodeInvoice(aText({ fields: [P, S, D, featureField(bit)] }))
    assert.deepEqual(invoice.features, [bit])
  }
  // Bits 8, 14 and 22, in words of five from the greatest down.
  const beside: Field = [TAG.features, [0b00100, 0, 0b10000, 0b01000, 0]]
  refuses(aText({ fields: [P, S, D, beside] }), 'a required feature is unknown')
})

test('decoding refuses a description that is not UTF-8 or that is filled up wrongly', () => {
  for (const words of [bytesToWords(Uint8Array.of(0xff)), [0], [13, 1], [13, 4, 0]]) {
    const fields: Field[] = [P, S, [TAG.description, words]]
    refuses(aText({ fields }), 'description is not UTF-8')
  }
})

test('skips fields that it does not read, however many, long or broken', () => {
  const known = decodeInvoice(aText({ fields: [P, S, D] }))
  const route: Field = [3, new Uint8Array(1023)]
  const fields: Field[] = [[9, [31]], route, P, route, [0, []], S, [31, [1, 2, 3]], D, [27, [1]]]
  const { bolt11, signedData, ...rest } = decodeInvoice(aText({ fields }))
  assert.deepEqual({ ...known, bolt11, signedData }, { ...rest, bolt11, signedData })
})

test('decoding refuses a field that is cut short in its head or in its body', () => {
  for (const tail of [[1], [1, 0], [3, 0, 1], [3, 31, 31], [3, 1, 0, ...new Uint8Array(31)]]) {
    refuses(aText({ fields: [P, S, D], tail }), 'a field is cut short')
  }
})

test('decoding refuses an invoice without room for timestamp and signature', () => {
  for (const length of [0, 103, 110]) {
    refuses(encodeBech32('lnbc', new Uint8Array(length)), 'too short')
  }
  refuses(encodeBech32('lnbc', new Uint8Array(111)), 'no payment hash')
})

test('decoding reads a recovery id of 0 to 3 and refuses one above', () => {
  for (const recoveryId of [0, 1, 2, 3]) {
    const invoice = decodeInvoice(aText({ fields: [P, S, D], recoveryId }))
    assert.equal(invoice.recoveryId, recoveryId)
  }
  refuses(aText({ fields: [P, S, D], recoveryId: 4 }), 'recovery id is not 0 to 3')
  refuses(aText({ fields: [P, S, D], recoveryId: 255 }), 'recovery id is not 0 to 3')
})

test('decoding refuses a prefix of another kind and an amount spelled in another way', () => {
  const others = ['bc', 'ln', 'lnbt', 'lnbcx', 'lnurl', 'xlnbc', 'lnbcrtx', 'lntbss', 'lnbc-1']
  const amounts = ['lnbc0', 'lnbc0n', 'lnbcrt0210n', 'lnbc1x', 'lnbc1nn', 'lnbcn', 'lnbc1.5u']
  for (const prefix of [...others, ...amounts]) {
    refuses(aText({ prefix, fields: [P, S, D] }), 'not the prefix of a Lightning invoice')
  }
})

test('decoding reads each network', () => {
  const networks = { bc: 'mainnet', tb: 'testnet', tbs: 'signet', bcrt: 'regtest', sb: 'simnet' }
  for (const [currency, network] of Object.entries(networks)) {
    for (const amount of ['', '5n']) {
      const prefix = `ln${currency}${amount}`
      assert.equal(decodeInvoice(aText({ prefix, fields: [P, S, D] })).network, network)
    }
  }
})

test('decoding reads each multiplier, and refuses less than a millisatoshi', () => {
  const amounts = {
    '1': 1e11,
    '2m': 2e8,
    '3u': 3e5,
    '4n': 400,
    '50p': 5,
    '1000000000010p': 1e11 + 1,
  }
  for (const [amount, amountMsat] of Object.entries(amounts)) {
    const text = aText({ prefix: `lnbc${amount}`, fields: [P, S, D] })
    assert.equal(decodeInvoice(text).amountMsat, amountMsat)
  }
  for (const amount of ['1p', '15p', '1234567891p']) {
    const text = aText({ prefix: `lnbc${amount}`, fields: [P, S, D] })
    refuses(text, 'amount is not in whole millisatoshis')
  }
})

test('decoding refuses an amount that is too large to count exactly or to exist', () => {
  const most = aText({ prefix: 'lnbc90071992547409910p', fields: [P, S, D] })
  assert.equal(decodeInvoice(most).amountMsat, Number.MAX_SAFE_INTEGER)
  const longest = '9'.repeat(3000)
  for (const amount of ['90071992547409920p', '90072', '21000001', `${longest}`, `${longest}m`]) {
    refuses(aText({ prefix: `lnbc${amount}`, fields: [P, S, D] }), 'amount is too large')
  }
})

test('decoding refuses a text beyond the largest QR code before it looks at anything else', () => {
  refuses('1'.repeat(7089), 'not bech32, or its checksum is wrong')
  refuses('1'.repeat(7090), 'too long')
})

test('decoding refuses mixed case, space around the text, a URI scheme and a wrong checksum', () => {
  const text = aText({ fields: [P, S, D] })
  const last = text.endsWith('q') ? 'p' : 'q'
  const wrong = [
    text.replace('ln', 'LN'),
    text.replace('ln', 'Ln'),
    ` ${text}`,
    `${text}\n`,
    `lightning:${text}`,
    text.slice(0, -1) + last,
    text.slice(0, -1),
    '',
  ]
  for (const one of wrong) refuses(one, 'not bech32, or its checksum is wrong')
})

test('an error says what is wrong without a word of the input', () => {
  const secret = 'open sesame'
  const texts = [secret, aText({ prefix: 'lnsesame', fields: [P, S, D] })]
  for (const text of texts) {
    assert.throws(
      () => decodeInvoice(text),
      (error) =>
        error instanceof InvalidInvoice &&
        error.name === 'InvalidInvoice' &&
        !error.message.includes('sesame'),
    )
  }
})

test('any text is an invoice or InvalidInvoice', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      readsOrRefuses(text)
    }),
    { numRuns: 10_000 },
  )
})

test('any bech32 text of any words is an invoice or InvalidInvoice', () => {
  const prefixes = fc.stringMatching(/^ln(bcrt|bc|tbs|tb|sb)[0-9]{0,24}[munpx]?$/)
  const words = fc.uint8Array({ max: 31, maxLength: 400 })
  fc.assert(
    fc.property(prefixes, words, (prefix, some) => {
      readsOrRefuses(encodeBech32(prefix, some))
    }),
    { numRuns: 10_000 },
  )
})

test('any change to an invoice, checksum mended, gives an invoice or InvalidInvoice', () => {
  const change = fc.tuple(fc.nat(), fc.nat({ max: 31 }), fc.constantFrom(0, 1, 2))
  const changes = fc.array(change, { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(fc.constantFrom(...vectors.own), changes, ({ invoice }, all) => {
      const { prefix, words } = parts(invoice)
      let changed = [...words]
      for (const [where, word, kind] of all) {
        const at = where % changed.length
        changed = changed.toSpliced(at, kind === 1 ? 0 : 1, ...(kind === 2 ? [] : [word]))
      }
      const text = encodeBech32(prefix, Uint8Array.from(changed))
      readsOrRefuses(text)
      readsOrRefuses(text.slice(0, -1))
    }),
    { numRuns: 10_000 },
  )
})

test('no change to an invoice passes as signed by its payee', () => {
  const changes = fc.tuple(fc.nat(), fc.integer({ min: 1, max: 31 }))
  fc.assert(
    fc.property(fc.constantFrom(...vectors.own), changes, (vector, [where, difference]) => {
      const { prefix, words } = parts(vector.invoice)
      const at = where % (words.length - SIGNATURE_WORDS)
      words[at] = (words[at] ?? 0) ^ difference
      const invoice = readsOrRefuses(encodeBech32(prefix, words))
      const payee = invoice && payeeOrNull(invoice)
      assert.notEqual(payee, vector.payee)
    }),
    { numRuns: 1000 },
  )
})
