import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  callbackUrl,
  checkedUrl,
  LnurlError,
  metadataHash,
  parseLightningAddress,
  readInvoice,
  readPayParams,
  readVerification,
  requireSendable,
} from '../../src/protocol/lnurl.ts'
import { isPublicAddress } from '../../src/protocol/public-address.ts'
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

  test('a URL beyond every use is refused', () => {
    assert.throws(() => checkedUrl(`https://example.com/${'a'.repeat(4096)}`, NONE), LnurlError)
  })
})

describe('step 1', () => {
  for (const { json, amountMsat, ok, note } of vectors.payParams) {
    test(`step 1 ${ok ? 'takes' : 'refuses'} its answer: ${note}`, () => {
      const read = () => requireSendable(readPayParams(json, NONE), Number(amountMsat))
      if (ok) read()
      else assert.throws(read, LnurlError)
    })
  }

  test("step 1 shows a provider's reason as plain text of a bounded length", () => {
    const reason = `\u001b[31mno${'\n'}such user\u202e ${'x'.repeat(500)}`
    assert.throws(
      () => readPayParams({ status: 'ERROR', reason }, NONE),
      (error: Error) =>
        error.message.startsWith('the provider refused: [31mno such user') &&
        error.message.length <= 230,
    )
    assert.throws(() => readPayParams({ status: 'ERROR' }, NONE), /no reason given/)
  })

  test('step 1 knows the hash of the metadata that an invoice may carry', () => {
    const { metadata, sha256 } = vectors.descriptionHash
    assert.equal(metadataHash(metadata), sha256)
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
      assert.equal(verified(verify), undefined, String(verify))
    }
  })

  test('step 2 refuses an answer without an invoice', () => {
    for (const json of [{}, { pr: '' }, { pr: 7 }, { pr: 'l'.repeat(7090) }, [], null, 'lnbc1']) {
      assert.throws(() => readInvoice(json, hosts), LnurlError)
    }
    assert.throws(() => readInvoice({ status: 'ERROR', pr: 'lnbc1' }, hosts), LnurlError)
  })
})

describe('verify', () => {
  for (const { invoice: bolt11, paymentHash, json, result } of vectors.verify) {
    test(`verify says ${result}`, () => {
      const read = () => readVerification(json, { bolt11, paymentHash })
      if (result.startsWith('error')) return assert.throws(read, LnurlError)
      assert.equal(read().state, result.split(' ')[0])
    })
  }

  const [known] = vectors.verify
  const invoice = { bolt11: known?.invoice ?? '', paymentHash: known?.paymentHash ?? '' }

  test('verify reads the invoice in either case', () => {
    const json = { status: 'OK', settled: true, pr: invoice.bolt11.toUpperCase() }
    assert.deepEqual(readVerification(json, invoice), { state: 'settled', preimage: null })
  })

  test('verify believes only what is exactly true', () => {
    for (const settled of [1, 'true', [true], { valueOf: true }, null, undefined, false]) {
      assert.deepEqual(readVerification({ status: 'OK', settled }, invoice), { state: 'pending' })
    }
    for (const status of [undefined, 'ok', 'ERROR', true]) {
      assert.deepEqual(readVerification({ status, settled: true }, invoice), { state: 'pending' })
    }
  })

  test('verify refuses a malformed preimage', () => {
    for (const preimage of ['', 7, {}, 'zz'.repeat(32), '00'.repeat(31)]) {
      const json = { status: 'OK', settled: true, preimage }
      assert.throws(() => readVerification(json, invoice), LnurlError)
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
