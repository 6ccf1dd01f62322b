import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { isPublicAddress } from '../../src/protocol/ip-address.ts'
import {
  callbackUrl,
  checkedUrl,
  LnurlError,
  parseLightningAddress,
  readInvoice,
  readPayParams,
  readVerification,
  requireSendable,
} from '../../src/protocol/lnurl.ts'
import { isPublicName } from '../../src/protocol/public-url.ts'
import { mutated } from '../support/arbitraries.ts'
import vectors from '../vectors/lnurl.json' with { type: 'json' }

const NONE: ReadonlySet<string> = new Set()
const LOCAL: ReadonlySet<string> = new Set(['127.0.0.1:9200', '[::1]:80', 'lnurl.local:443'])

describe('Lightning Addresses', () => {
  for (const { in: text, url, note } of vectors.addresses) {
    test(`the address ${JSON.stringify(text)} is ${url === undefined ? 'refused' : 'taken'}: ${note}`, () => {
      if (url === undefined) assert.throws(() => parseLightningAddress(text, NONE), LnurlError)
      else assert.equal(parseLightningAddress(text, NONE).url.href, url)
    })
  }

  test('an address that is refused says what is wrong with it', () => {
    for (const [text, message] of [
      ['alice', 'the domain of a Lightning Address must be a public name'],
      ['a b@example.com', 'not a Lightning Address'],
      ['alice@example.com@other.com', 'not a Lightning Address'],
      ['..@example.com', 'not a Lightning Address'],
      ['alice@localhost', 'the domain of a Lightning Address must be a public name'],
      ['alice@', 'the domain of a Lightning Address must be a public name'],
    ] as const) {
      const refused = { name: 'LnurlError', message }
      assert.throws(() => parseLightningAddress(text, NONE), refused, text)
    }
    const refused = { name: 'LnurlError', message: 'not a Lightning Address' }
    assert.throws(() => parseLightningAddress('..@127.0.0.1:9200', LOCAL), refused)
  })

  test('a server on the list is reached at its own port, without TLS', () => {
    const { url, domain, address } = parseLightningAddress('Bob@127.0.0.1:9200', LOCAL)
    assert.equal(url.href, 'http://127.0.0.1:9200/.well-known/lnurlp/bob')
    assert.equal(domain, '127.0.0.1:9200')
    assert.equal(address, 'bob@127.0.0.1:9200')
  })

  test('a server on the list opens no other port, host or path', () => {
    for (const text of [
      'bob@127.0.0.1:9201',
      'bob@127.0.0.2:9200',
      'bob@127.0.0.1',
      '..@127.0.0.1:9200',
      'bob@127.0.0.1:9200/x',
      'bob@127.0.0.1:9200#',
    ]) {
      assert.throws(() => parseLightningAddress(text, LOCAL), LnurlError, text)
    }
  })
})

describe('URLs that a provider names', () => {
  for (const { callback, amountMsat, url, note } of vectors.callbacks) {
    test(`the callback ${callback} is ${url === undefined ? 'refused' : 'taken'}: ${note}`, () => {
      if (url === undefined) return assert.throws(() => checkedUrl(callback, NONE), LnurlError)
      const params = { ...aPayRequest(), callback }
      assert.equal(callbackUrl(readPayParams(params, NONE), Number(amountMsat)).href, url)
    })
  }

  for (const { in: text, hostname } of vectors.ssrf.urlForms) {
    test(`${text} is ${hostname}, and never called`, () => {
      assert.equal(new URL(text).hostname, hostname)
      assert.throws(() => checkedUrl(text, NONE), LnurlError)
      assert.throws(() => checkedUrl(text.replace('http:', 'https:'), NONE), LnurlError)
    })
  }

  test('an address of the public internet is not called by its number either', () => {
    for (const address of vectors.ssrf.ips.public) {
      const host = address.includes(':') ? `[${address}]` : address
      assert.throws(() => checkedUrl(`https://${host}/`, NONE), LnurlError)
    }
  })

  test('a server on the list may be called without TLS, but not with credentials', () => {
    assert.equal(checkedUrl('http://127.0.0.1:9200/a#b', LOCAL).href, 'http://127.0.0.1:9200/a')
    assert.equal(checkedUrl('http://[::1]/', LOCAL).href, 'http://[::1]/')
    assert.equal(checkedUrl('https://lnurl.local/', LOCAL).href, 'https://lnurl.local/')
    for (const text of [
      'http://u@127.0.0.1:9200/',
      'ftp://127.0.0.1:9200/',
      'http://127.0.0.1:9201/',
      'http://lnurl.local:8080/',
    ]) {
      assert.throws(() => checkedUrl(text, LOCAL), LnurlError, text)
    }
  })

  test('a URL that is refused says what is wrong with it', () => {
    for (const [text, message] of [
      ['example.com', 'not a URL'],
      ['https://me@example.com/', 'a URL with credentials'],
      ['https://:secret@example.com/', 'a URL with credentials'],
      ['ftp://example.com/', 'a URL that is not https'],
      ['http://example.com/', 'a URL that is not https'],
      ['https://example.com:8443/', 'a URL with another port than 443'],
      ['https://localhost/', 'a URL whose host is not a public name'],
    ] as const) {
      assert.throws(() => checkedUrl(text, NONE), { name: 'LnurlError', message }, text)
    }
    for (const text of ['xhttp://127.0.0.1:9200/', 'httpx://127.0.0.1:9200/']) {
      assert.throws(() => checkedUrl(text, LOCAL), { message: 'a URL that is not https' }, text)
    }
  })

  test('a URL of 4096 characters is taken, and a longer one refused', () => {
    const longest = 'https://example.com/'.padEnd(4096, 'a')
    assert.equal(checkedUrl(longest, NONE).href, longest)
    assert.throws(() => checkedUrl(`${longest}a`, NONE), { message: 'not a URL' })
  })

  test('a name is public whatever digits are in its last label, unless the label is a number', () => {
    for (const last of ['co1', '1st', '0xg', 'a0x1']) {
      assert.equal(isPublicName(`example.${last}`), true, last)
    }
    for (const last of ['1', '256', '0x', '0xf', '0xff']) {
      assert.equal(isPublicName(`example.${last}`), false, last)
    }
  })

  test('a name is public up to 253 characters', () => {
    const longest = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(57)}.com`
    assert.equal(longest.length, 253)
    assert.equal(isPublicName(longest), true)
    assert.equal(isPublicName(longest.replace('.com', 'd.com')), false)
  })
})

describe('step 1', () => {
  test('step 1 takes its answer', () => requireSendable(readPayParams(aPayRequest(), NONE), 21_000))

  for (const { changes, json, amountMsat = 21_000, note } of vectors.refusedPayRequests) {
    test(`step 1 refuses its answer: ${note}`, () => {
      const said = changes ? { ...aPayRequest(), ...changes } : json
      assert.throws(() => requireSendable(readPayParams(said, NONE), amountMsat), LnurlError)
    })
  }

  test("step 1 shows a provider's reason as plain text of a bounded length, or that there is none", () => {
    const refusal = (reason: string) => ({ message: `the provider refused: ${reason}` })
    const read = (said: object) => () => readPayParams({ status: 'ERROR', ...said }, NONE)
    const reason = '\u001b[31mno\u0007\n\nsuch\u202e\tuser\n'
    assert.throws(read({ reason }), refusal('[31mno such user'))
    assert.throws(read({ reason: 'x'.repeat(201) }), refusal('x'.repeat(200)))
    for (const reason of ['', '\u0007', '  \n', 7, null]) {
      assert.throws(read({ reason }), refusal('no reason given'))
    }
    assert.throws(read({}), refusal('no reason given'))
  })

  test('step 1 says what is wrong with its answer', () => {
    const bounds = 'the bounds of the amount are not positive whole millisatoshis'
    const metadata = 'the metadata is not a list with one plain text'
    const payer = 'the provider demands data about the payer, which is never sent'
    for (const [change, message] of [
      [{ tag: 'withdrawRequest' }, 'the answer is no pay request'],
      [{ minSendable: 2, maxSendable: 1 }, bounds],
      [{ minSendable: '1' }, bounds],
      [{ minSendable: 0 }, bounds],
      [{ metadata: ['[["text/plain","x"]]'] }, metadata],
      [{ metadata: 'x' }, metadata],
      [{ metadata: '{"0":["text/plain","x"]}' }, metadata],
      [{ metadata: '[["text/plain","x"],7]' }, metadata],
      [{ metadata: '[["text/plain",7]]' }, metadata],
      [{ metadata: '[]' }, metadata],
      [{ payerData: { name: { mandatory: false }, email: { mandatory: true } } }, payer],
      [{ callback: 7 }, 'the callback is not a URL'],
    ] as const) {
      const read = () => readPayParams({ ...aPayRequest(), ...change }, NONE)
      assert.throws(read, { name: 'LnurlError', message }, JSON.stringify(change))
    }
    const message = 'the answer is not a JSON object'
    assert.throws(() => readPayParams([], NONE), { name: 'LnurlError', message })
  })

  test('step 1 takes an answer that would like data about the payer', () => {
    const payerData = { name: { mandatory: false }, note: 7, auth: { mandatory: 'true' } }
    assert.doesNotThrow(() => readPayParams({ ...aPayRequest(), payerData }, NONE))
  })

  test('step 1 takes the least and the greatest amount, and says the bounds in whole satoshis', () => {
    const params = { ...aPayRequest(), minSendable: 1_500, maxSendable: 5_999 }
    const read = readPayParams(params, NONE)
    for (const amountMsat of [1_500, 3_000, 5_999]) requireSendable(read, amountMsat)
    const message = 'the provider takes 2 to 5 sat, and 1 sat is outside of that'
    assert.throws(() => requireSendable(read, 1_000), { name: 'LnurlError', message })
    assert.throws(() => requireSendable(read, 6_000), LnurlError)
    const exact = readPayParams({ ...params, maxSendable: 1_500 }, NONE)
    assert.doesNotThrow(() => requireSendable(exact, 1_500))
  })
})

describe('step 2', () => {
  const callback = new URL('https://pay.example.com/cb')
  const hosts = { allowed: NONE, callback, domain: 'example.com' }
  const verified = (verify: unknown) => readInvoice({ pr: 'lnbc1', verify }, hosts).verify?.href

  test('step 2 takes a verify on the host of the callback or of the address', () => {
    assert.equal(verified('https://pay.example.com/v/1'), 'https://pay.example.com/v/1')
    assert.equal(verified('https://example.com/v/1'), 'https://example.com/v/1')
  })

  test('step 2 ignores any other verify', () => {
    for (const verify of [
      undefined,
      null,
      7,
      '',
      'https://other.com/v',
      'http://example.com/v',
      'https://127.0.0.1/v',
      'https://evil.example.com.other.com/v',
      'https://example.com:8443/v',
    ]) {
      assert.equal(readInvoice({ pr: 'lnbc1', verify }, hosts).verify, null, String(verify))
    }
  })

  test('step 2 refuses an answer without an invoice', () => {
    const message = 'the answer holds no invoice'
    for (const json of [{}, { pr: '' }, { pr: 7 }, { pr: 'l'.repeat(7090) }]) {
      assert.throws(() => readInvoice(json, hosts), { name: 'LnurlError', message })
    }
    for (const json of [[], null, 'lnbc1']) {
      assert.throws(() => readInvoice(json, hosts), LnurlError)
    }
    assert.equal(readInvoice({ pr: 'l'.repeat(7089) }, hosts).bolt11.length, 7089)
    assert.throws(() => readInvoice({ status: 'ERROR', pr: 'lnbc1' }, hosts), LnurlError)
  })
})

describe('verify', () => {
  const { bolt11, paymentHash, answers } = vectors.verify
  const invoice = { bolt11, paymentHash }

  for (const { json, result } of answers) {
    test(`verify says ${result}`, () => {
      const read = () => readVerification(json, invoice)
      if (result.startsWith('error')) return assert.throws(read, LnurlError)
      assert.equal(read().state, result.split(' ')[0])
    })
  }

  test('verify reads the invoice in either case', () => {
    const json = { status: 'OK', settled: true, pr: invoice.bolt11.toUpperCase() }
    assert.deepEqual(readVerification(json, invoice), { state: 'settled', preimage: null })
    const silent = { ...json, pr: null }
    assert.deepEqual(readVerification(silent, invoice), { state: 'settled', preimage: null })
  })

  test('verify gives a preimage in lower case', () => {
    const preimage = 'ab'.repeat(32)
    const paymentHash = createHash('sha256').update(Buffer.from(preimage, 'hex')).digest('hex')
    const json = { status: 'OK', settled: true, preimage: preimage.toUpperCase() }
    const verification = readVerification(json, { ...invoice, paymentHash })
    assert.deepEqual(verification, { state: 'settled', preimage })
  })

  test('verify says what contradicts the invoice', () => {
    const ok = { status: 'OK', settled: true }
    const preimage = 'the verification shows a preimage that does not belong to the invoice'
    for (const [json, message] of [
      [[], 'the verification is not a JSON object'],
      [{ ...ok, pr: 'lnbc1other' }, 'the verification is about another invoice'],
      [{ ...ok, pr: 7 }, 'the verification is about another invoice'],
      [{ ...ok, preimage: '00'.repeat(32) }, preimage],
      ...['', 7, {}, ['0', '0'], 'zz'.repeat(32), '00'.repeat(31)].map(
        (shown) => [{ ...ok, preimage: shown }, preimage] as const,
      ),
    ] as const) {
      const read = () => readVerification(json, invoice)
      assert.throws(read, { name: 'LnurlError', message }, JSON.stringify(json))
    }
  })

  test('verify believes only what is exactly true', () => {
    for (const settled of [1, 'true', [true], { valueOf: true }, null, undefined, false]) {
      assert.deepEqual(readVerification({ status: 'OK', settled }, invoice), { state: 'pending' })
    }
    for (const status of [undefined, 'ok', 'ERROR', true]) {
      assert.deepEqual(readVerification({ status, settled: true }, invoice), { state: 'pending' })
    }
  })
})

describe('arbitrary input', () => {
  test('an address becomes the URL of its own domain, or our error', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom(...'ab1.@-_+:/#?[]%\\ 0x\u3002\uff11') }),
      mutated('alice@example.com'),
      mutated('a@127.0.0.1:9200/x#'),
    )
    fc.assert(
      fc.property(texts, (text) => {
        const parsed = orOurError(() => parseLightningAddress(text, NONE))
        if (parsed === null) return
        const [user, domain] = text.trim().toLowerCase().split('@')
        assert.equal(parsed.url.href, `https://${domain}/.well-known/lnurlp/${user}`)
        assert.equal(parsed.url.hostname, domain)
      }),
      { numRuns: 10_000 },
    )
  })

  test('a URL is https to a name on port 443, or our error', () => {
    const urls = fc.oneof(
      fc.webUrl({ withQueryParameters: true, withFragments: true }),
      fc.ipV4().map((address) => `https://${address}/`),
      fc.ipV4Extended().map((address) => `https://${address}/`),
      fc.ipV6().map((address) => `https://[${address}]/`),
      mutated('https://user:pw@example.com:443/cb?x=1#y'),
    )
    fc.assert(
      fc.property(urls, (text) => {
        const url = orOurError(() => checkedUrl(text, NONE))
        if (url === null) return
        assert.equal(url.protocol, 'https:')
        assert.equal(url.port + url.username + url.password + url.hash, '')
        assert.equal(isPublicAddress(url.hostname.replaceAll(/[[\]]/g, '')), false)
        assert.match(url.hostname, /\.[a-z0-9-]*[a-z-][a-z0-9-]*$/)
      }),
      { numRuns: 10_000 },
    )
  })

  test('any JSON is read or refused with our error', () => {
    const callback = new URL('https://example.com/cb')
    const near = fc.record(
      {
        tag: fc.constantFrom('payRequest', 'x'),
        status: fc.constantFrom('OK', 'ERROR', 7),
        callback: fc.oneof(fc.constant('https://example.com/cb'), fc.string()),
        minSendable: fc.oneof(fc.nat(), fc.double(), fc.string()),
        maxSendable: fc.oneof(fc.nat(), fc.constant(1e12)),
        metadata: fc.oneof(fc.json(), fc.constant('[["text/plain","x"]]')),
        payerData: fc.jsonValue(),
        pr: fc.oneof(fc.string(), fc.nat()),
        verify: fc.oneof(fc.string(), fc.webUrl()),
        settled: fc.oneof(fc.boolean(), fc.string()),
        preimage: fc.oneof(fc.string(), fc.nat()),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), near), (json) => {
        orOurError(() => readPayParams(json, NONE))
        orOurError(() => readInvoice(json, { allowed: NONE, callback, domain: 'example.com' }))
        orOurError(() => readVerification(json, { bolt11: 'lnbc1', paymentHash: '00'.repeat(32) }))
      }),
      { numRuns: 5_000 },
    )
  })
})

function aPayRequest(): Record<string, unknown> {
  return {
    tag: 'payRequest',
    callback: 'https://example.com/cb',
    minSendable: 1,
    maxSendable: 100_000_000,
    metadata: '[["text/plain","x"]]',
  }
}

/** The value, or null where it was refused; anything else that is thrown fails the test. */
function orOurError<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof LnurlError) return null
    throw error
  }
}
