import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hex, hexBytes, utf8 } from '../../src/lib/bytes.ts'
import { bytesToWords, decodeBech32, encodeBech32 } from '../../src/protocol/bech32.ts'
import { decodeInvoice, InvalidInvoice, type Invoice, TAG } from '../../src/protocol/bolt11.ts'
import { encodeInvoice, type InvoiceFields, payeeOf } from '../../src/protocol/bolt11-sign.ts'
import vectors from '../vectors/bolt11.json' with { type: 'json' }

type OwnVector = (typeof vectors.own)[number]
type Field = [tag: number, words: ArrayLike<number>]

// The order of secp256k1: s and its difference to this sign the same.
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

const SIGNATURE_WORDS = 104
const HASH = bytesToWords(new Uint8Array(32).fill(7))
const KEY = bytesToWords(new Uint8Array(33).fill(2))
const TEXT = bytesToWords(utf8('inbox'))
const P: Field = [TAG.paymentHash, HASH]
const S: Field = [TAG.paymentSecret, HASH]
const D: Field = [TAG.description, TEXT]
const H: Field = [TAG.descriptionHash, HASH]
const N: Field = [TAG.payee, KEY]

for (const vector of vectors.own) {
  test(`reads ${vector.name}, and names its payee`, () => {
    const invoice = decodeInvoice(vector.invoice)
    assert.deepEqual(invoice, invoiceOf(vector))
    assert.equal(payeeOf(invoice), vector.payee)
    assert.deepEqual(decodeInvoice(vector.invoice.toUpperCase()), invoice)
  })

  test(`writes ${vector.name} byte for byte`, () => {
    assert.equal(encodeInvoice(fieldsOf(vector), bytes(vector.privateKey)), vector.invoice)
  })
}

for (const vector of vectors.adversarial) {
  test(`is not misled by ${vector.name}`, () => {
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

test('refuses an invoice with a required field missing', () => {
  refuses(aText({ fields: [S, D] }), 'no payment hash')
  refuses(aText({ fields: [P, D] }), 'no payment secret')
  refuses(aText({ fields: [P, S] }), 'not exactly one of description and description hash')
})

test('refuses an invoice with both a description and a description hash', () => {
  refuses(aText({ fields: [P, S, D, H] }), 'not exactly one of description and description hash')
  refuses(
    aText({ fields: [P, S, H, [TAG.description, []]] }),
    'not exactly one of description and description hash',
  )
})

test('refuses any field that we read when it is there twice', () => {
  const x: Field = [TAG.expiry, [1]]
  const c: Field = [TAG.minFinalCltv, [18]]
  const features: Field = [TAG.features, [16, 8, 0]]
  for (const twice of [P, S, D, N, x, c, features]) {
    const others = [P, S, D].filter((field) => field !== twice)
    refuses(aText({ fields: [...others, twice, twice] }), 'a field is there twice')
  }
  refuses(aText({ fields: [P, S, H, H] }), 'a field is there twice')
})

test('refuses a hash, secret or key of another length instead of skipping it', () => {
  for (const [tag, words] of [P, S, H, N]) {
    const others = [P, S, tag === TAG.descriptionHash ? H : D].filter(([other]) => other !== tag)
    for (const length of [0, words.length - 1, words.length + 1]) {
      const resized = Uint8Array.from({ length }, (_, i) => words[i] ?? 0)
      refuses(aText({ fields: [...others, [tag, resized]] }), 'a field has the wrong length')
    }
  }
})

test('refuses a hash whose filling bits are set', () => {
  const filled = HASH.slice()
  filled[51] = 1
  refuses(aText({ fields: [[TAG.paymentHash, filled], S, D] }), 'a field has the wrong length')
})

test('refuses a number with a leading zero, of zero words, or beyond 35 bits', () => {
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

test('reads the longest expiry that fits, as an instant that a date can show', () => {
  const seven = [31, 31, 31, 31, 31, 31, 31]
  const invoice = decodeInvoice(aText({ timestamp: seven, fields: [P, S, D, [TAG.expiry, seven]] }))
  assert.equal(invoice.timestamp, 2 ** 35 - 1)
  assert.equal(invoice.expirySeconds, 2 ** 35 - 1)
  assert.equal(new Date(invoice.expiresAt).getTime(), (2 ** 36 - 2) * 1000)
})

test('reads what is left out as 3600 seconds, 18 blocks and no features', () => {
  const invoice = decodeInvoice(aText({ fields: [P, S, D] }))
  assert.equal(invoice.expirySeconds, 3600)
  assert.equal(invoice.expiresAt, (invoice.timestamp + 3600) * 1000)
  assert.equal(invoice.minFinalCltv, 18)
  assert.deepEqual(invoice.features, [])
})

test('reads a number of several words, the first of which is the greatest', () => {
  const fields: Field[] = [P, S, D, [TAG.minFinalCltv, [4, 16]], [TAG.expiry, [2, 22, 11]]]
  const invoice = decodeInvoice(aText({ fields }))
  assert.equal(invoice.minFinalCltv, 144)
  assert.equal(invoice.expirySeconds, 2763)
})

test('refuses a required feature that it does not know, and ignores an optional one', () => {
  for (const bit of [0, 2, 10, 12, 18, 22, 26, 46, 50, 100]) {
    refuses(aText({ fields: [P, S, D, featureField(bit)] }), 'a required feature is unknown')
  }
  for (const bit of [8, 14, 16, 24, 48, 9, 15, 17, 49, 99, 1001]) {
    const invoice = decodeInvoice(aText({ fields: [P, S, D, featureField(bit)] }))
    assert.deepEqual(invoice.features, [bit])
  }
})

test('refuses a description that is not UTF-8 or that is filled up wrongly', () => {
  for (const words of [bytesToWords(Uint8Array.of(0xff)), [0], [13, 1], [13, 4, 0]]) {
    const fields: Field[] = [P, S, [TAG.description, words]]
    refuses(aText({ fields }), 'description is not UTF-8')
  }
})

test('tells an empty description from none', () => {
  const fields: Field[] = [P, S, [TAG.description, []]]
  assert.equal(decodeInvoice(aText({ fields })).description, '')
  assert.equal(decodeInvoice(aText({ fields: [P, S, H] })).description, null)
})

test('skips fields that it does not read, however many, long or broken', () => {
  const known = decodeInvoice(aText({ fields: [P, S, D] }))
  const route: Field = [3, new Uint8Array(1023)]
  const fields: Field[] = [[9, [31]], route, P, route, [0, []], S, [31, [1, 2, 3]], D, [27, [1]]]
  const { bolt11, signedData, ...rest } = decodeInvoice(aText({ fields }))
  assert.deepEqual({ ...known, bolt11, signedData }, { ...rest, bolt11, signedData })
})

test('refuses a field that is cut short in its head or in its body', () => {
  for (const tail of [[1], [1, 0], [3, 0, 1], [3, 31, 31], [3, 1, 0, ...new Uint8Array(31)]]) {
    refuses(aText({ fields: [P, S, D], tail }), 'a field is cut short')
  }
})

test('refuses an invoice without room for timestamp and signature', () => {
  for (const length of [0, 103, 110]) {
    refuses(encodeBech32('lnbc', new Uint8Array(length)), 'too short')
  }
  refuses(encodeBech32('lnbc', new Uint8Array(111)), 'no payment hash')
})

test('reads a recovery id of 0 to 3 and refuses one above', () => {
  for (const recoveryId of [0, 1, 2, 3]) {
    const invoice = decodeInvoice(aText({ fields: [P, S, D], recoveryId }))
    assert.equal(invoice.recoveryId, recoveryId)
  }
  refuses(aText({ fields: [P, S, D], recoveryId: 4 }), 'recovery id is not 0 to 3')
  refuses(aText({ fields: [P, S, D], recoveryId: 255 }), 'recovery id is not 0 to 3')
})

test('refuses a prefix of another kind and an amount spelled in another way', () => {
  const others = ['bc', 'ln', 'lnbt', 'lnbcx', 'lnurl', 'xlnbc', 'lnbcrtx', 'lntbss', 'lnbc-1']
  const amounts = ['lnbc0', 'lnbc0n', 'lnbcrt0210n', 'lnbc1x', 'lnbc1nn', 'lnbcn', 'lnbc1.5u']
  for (const prefix of [...others, ...amounts]) {
    refuses(aText({ prefix, fields: [P, S, D] }), 'not the prefix of a Lightning invoice')
  }
})

test('reads each network', () => {
  const networks = { bc: 'mainnet', tb: 'testnet', tbs: 'signet', bcrt: 'regtest', sb: 'simnet' }
  for (const [currency, network] of Object.entries(networks)) {
    for (const amount of ['', '5n']) {
      const prefix = `ln${currency}${amount}`
      assert.equal(decodeInvoice(aText({ prefix, fields: [P, S, D] })).network, network)
    }
  }
})

test('reads each multiplier, and refuses less than a millisatoshi', () => {
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

test('refuses an amount that is too large to count exactly or to exist', () => {
  const most = aText({ prefix: 'lnbc90071992547409910p', fields: [P, S, D] })
  assert.equal(decodeInvoice(most).amountMsat, Number.MAX_SAFE_INTEGER)
  const longest = '9'.repeat(3000)
  for (const amount of ['90071992547409920p', '90072', '21000001', `${longest}`, `${longest}m`]) {
    refuses(aText({ prefix: `lnbc${amount}`, fields: [P, S, D] }), 'amount is too large')
  }
})

test('refuses a text beyond the largest QR code before it looks at anything else', () => {
  refuses('1'.repeat(7089), 'not bech32, or its checksum is wrong')
  refuses('1'.repeat(7090), 'too long')
})

test('refuses mixed case, space around the text, a URI scheme and a wrong checksum', () => {
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

test('says what is wrong without a word of the input', () => {
  const secret = 'open sesame'
  const texts = [secret, aText({ prefix: 'lnsesame', fields: [P, S, D] })]
  for (const text of texts) {
    assert.throws(
      () => decodeInvoice(text),
      (error) => error instanceof InvalidInvoice && !error.message.includes('sesame'),
    )
  }
})

test('writes every amount in its shortest spelling and reads it back', () => {
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

test('reads back every invoice that it writes, under the key it wrote it with', () => {
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

test('writes a description of 639 bytes, and refuses to cut a longer one', () => {
  const key = bytes(first().privateKey)
  const longest = `${'é'.repeat(319)}x`
  const text = encodeInvoice(described(longest), key)
  assert.equal(decodeInvoice(text).description, longest)
  assert.throws(() => encodeInvoice(described('é'.repeat(320)), key), RangeError)
})

test('writes the latest time and the longest expiry there are', () => {
  const latest = { timestamp: 2 ** 35 - 1, expirySeconds: 2 ** 35 - 1 }
  const text = encodeInvoice({ ...fieldsOf(first()), ...latest }, bytes(first().privateKey))
  const { timestamp, expirySeconds } = decodeInvoice(text)
  assert.deepEqual({ timestamp, expirySeconds }, latest)
})

test('refuses to write what no reader would take', () => {
  const key = bytes(first().privateKey)
  const wrong: Partial<InvoiceFields>[] = [
    ...[0, -1, 1.5, Number.NaN, 2 ** 53].map((amountMsat) => ({ amountMsat })),
    ...[0, -1, 1.5, Number.NaN, 2 ** 35].map((timestamp) => ({ timestamp })),
    ...[0, -1, 1.5, Number.NaN, 2 ** 35].map((expirySeconds) => ({ expirySeconds })),
    ...['', 'ab', `${'0'.repeat(63)}x`, '0'.repeat(66)].map((paymentHash) => ({ paymentHash })),
    ...[0, 31, 33].map((length) => ({ paymentSecret: new Uint8Array(length) })),
    { payee: `02${'11'.repeat(32)}` },
  ]
  for (const one of wrong) {
    const fields = { ...fieldsOf(first()), ...one } as InvoiceFields
    assert.throws(() => encodeInvoice(fields, key), RangeError)
  }
})

test('takes a high s where the key is recovered, but not where it is named', () => {
  const recovered = decodeInvoice(own('regtest-21-sat').invoice)
  const named = decodeInvoice(own('regtest-with-n-field').invoice)
  assert.equal(payeeOf(withHighS(recovered)), first().payee)
  assert.throws(() => payeeOf(withHighS(named)), invalid('signature is wrong'))
})

test('refuses a signature of another key than the named one', () => {
  const named = decodeInvoice(own('regtest-with-n-field').invoice)
  const other = payeeOf(decodeInvoice(adversarial('an amount changed under a recovered key')))
  assert.throws(() => payeeOf({ ...named, payee: other }), invalid('signature is wrong'))
})

test('refuses a named key that is no point on the curve', () => {
  const named = decodeInvoice(own('regtest-with-n-field').invoice)
  for (const payee of [`02${'00'.repeat(32)}`, `05${'11'.repeat(32)}`, 'ff'.repeat(33)]) {
    assert.throws(() => payeeOf({ ...named, payee }), invalid('signature is wrong'))
  }
})

test('refuses an r or s that is zero or out of range, and a key that cannot be recovered', () => {
  for (const name of ['regtest-21-sat', 'regtest-with-n-field']) {
    const invoice = decodeInvoice(own(name).invoice)
    for (const fill of [0, 255]) {
      for (const [start, end] of [
        [0, 32],
        [32, 64],
      ] as const) {
        const signature = invoice.signature.slice().fill(fill, start, end)
        assert.throws(() => payeeOf({ ...invoice, signature }), invalid('signature is wrong'))
      }
    }
  }
  const invoice = decodeInvoice(own('regtest-21-sat').invoice)
  assert.throws(() => payeeOf({ ...invoice, recoveryId: 2 }), invalid('signature is wrong'))
})

test('makes of any text an invoice or InvalidInvoice', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      readsOrRefuses(text)
    }),
    { numRuns: 10_000 },
  )
})

test('makes of any bech32 text of any words an invoice or InvalidInvoice', () => {
  const prefixes = fc.stringMatching(/^ln(bcrt|bc|tbs|tb|sb)[0-9]{0,24}[munpx]?$/)
  const words = fc.uint8Array({ max: 31, maxLength: 400 })
  fc.assert(
    fc.property(prefixes, words, (prefix, some) => {
      readsOrRefuses(encodeBech32(prefix, some))
    }),
    { numRuns: 10_000 },
  )
})

test('makes of any change to an invoice, checksum mended, an invoice or InvalidInvoice', () => {
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

test('passes no change to an invoice off as signed by its payee', () => {
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

/** The text of an invoice with these fields, in order, and a signature by nobody. */
function aText(
  ask: Partial<Record<'timestamp' | 'tail', number[]>> & {
    prefix?: string
    fields: Field[]
    recoveryId?: number
  },
): string {
  const { prefix = 'lnbcrt', timestamp = [1, 21, 20, 19, 20, 16, 0], recoveryId = 0 } = ask
  const fields = ask.fields.flatMap(([tag, words]) => [
    tag,
    words.length >>> 5,
    words.length & 31,
    ...Array.from(words),
  ])
  const signature = bytesToWords(Uint8Array.of(...new Uint8Array(64).fill(1), recoveryId))
  const words = [...timestamp, ...fields, ...(ask.tail ?? []), ...signature]
  return encodeBech32(prefix, Uint8Array.from(words))
}

function featureField(bit: number): Field {
  const words = new Uint8Array(Math.floor(bit / 5) + 1)
  words[0] = 1 << (bit % 5)
  return [TAG.features, words]
}

function invoiceOf(vector: OwnVector): Invoice {
  const { name, note, invoice, preimage, namedPayee, payee, privateKey, ...rest } = vector
  return {
    ...rest,
    bolt11: invoice,
    network: networkOf(vector),
    payee: namedPayee,
    expiresAt: (vector.timestamp + vector.expirySeconds) * 1000,
    recoveryId: vector.recoveryId === 0 ? 0 : 1,
    signature: bytes(vector.signature),
    signedData: bytes(vector.signedData),
  }
}

function fieldsOf(vector: OwnVector): InvoiceFields {
  const { amountMsat, timestamp, expirySeconds, paymentHash, namedPayee } = vector
  return {
    network: networkOf(vector),
    amountMsat,
    timestamp,
    expirySeconds,
    paymentHash,
    paymentSecret: bytes(vector.paymentSecret),
    ...(namedPayee === null ? {} : { payee: namedPayee }),
    ...(vector.descriptionHash === null
      ? { description: vector.description ?? '' }
      : { descriptionHash: vector.descriptionHash }),
  }
}

const networkOf = (vector: OwnVector) => vector.network as Invoice['network']

function described(description: string): InvoiceFields {
  const { descriptionHash, ...fields } = fieldsOf(first())
  return { ...fields, description }
}

function own(name: string): OwnVector {
  const vector = vectors.own.find((one) => one.name === name)
  assert.ok(vector)
  return vector
}

const first = () => own('regtest-21-sat')

function adversarial(name: string): string {
  const vector = vectors.adversarial.find((one) => one.name === name)
  assert.ok(vector)
  return vector.invoice
}

function withHighS(invoice: Invoice): Invoice {
  const s = ORDER - BigInt(`0x${hex(invoice.signature.subarray(32))}`)
  const signature = bytes(hex(invoice.signature.subarray(0, 32)) + s.toString(16).padStart(64, '0'))
  return { ...invoice, signature, recoveryId: invoice.recoveryId === 0 ? 1 : 0 }
}

function parts(text: string): { prefix: string; words: Uint8Array } {
  const read = decodeBech32(text)
  assert.ok(read)
  return read
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  const read = hexBytes(text)
  assert.ok(read)
  return read
}

function readsOrRefuses(text: string): Invoice | null {
  try {
    const invoice = decodeInvoice(text)
    payeeOrNull(invoice)
    return invoice
  } catch (error) {
    assert.ok(error instanceof InvalidInvoice)
    return null
  }
}

function payeeOrNull(invoice: Invoice): string | null {
  try {
    return payeeOf(invoice)
  } catch (error) {
    assert.ok(error instanceof InvalidInvoice)
    return null
  }
}

function refuses(text: string, reason: string | undefined): void {
  assert.throws(() => decodeInvoice(text), invalid(reason))
}

function invalid(reason: string | undefined) {
  return (error: unknown) => {
    assert.ok(error instanceof InvalidInvoice)
    assert.equal(error.message, reason)
    return true
  }
}
