import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { CompactSign, exportJWK, generateKeyPair } from 'jose'
import { bindingText, gateRequestDigest } from '../../src/protocol/gate-binding.ts'
import {
  type Admission,
  type GateReceipt,
  MAX_RECEIPT_CHARS,
  readGateKeys,
  verifyAdmission,
  verifyReceipt,
} from '../../src/protocol/gate-receipt.ts'
import { mutated } from '../support/arbitraries.ts'

const NOW = 1_800_000_000
const { privateKey, publicKey } = await generateKeyPair('EdDSA', { extractable: true })
const { x = '' } = await exportJWK(publicKey)
const KEYS = [{ kid: 'k1', x }]

const CLAIMS: GateReceipt = {
  iss: 'https://mayfly.example.org',
  aud: 'gate_project_1',
  jti: 'r1',
  iat: NOW,
  exp: NOW + 300,
  intent: 'gate_intent_1',
  route: 'render',
  htm: 'POST',
  htp: '/render/cat?size=2',
  req: 'ab'.repeat(32),
  sat: 50,
  ph: 'cd'.repeat(32),
  net: 'regtest',
  by: 'preimage',
}

const ADMISSION: Admission = {
  audience: CLAIMS.aud,
  route: 'render',
  method: 'POST',
  path: '/render/cat?size=2',
  requestDigest: CLAIMS.req,
  now: NOW * 1000,
}

test('a receipt that jose signed is read as it was meant', async () => {
  const receipt = await sign(CLAIMS)
  assert.deepEqual(await verifyReceipt(receipt, KEYS), { outcome: 'ok', receipt: CLAIMS })
  assert.deepEqual(await verifyAdmission(receipt, KEYS, ADMISSION), {
    outcome: 'ok',
    receipt: CLAIMS,
  })
})

test('an old receipt is a record, and lets nobody in', async () => {
  const receipt = await sign(CLAIMS)
  const now = (NOW + 300) * 1000
  assert.equal((await verifyReceipt(receipt, KEYS)).outcome, 'ok')
  assert.deepEqual(await verifyAdmission(receipt, KEYS, { ...ADMISSION, now }), {
    outcome: 'expired',
    receipt: CLAIMS,
  })
  const other = await verifyAdmission(receipt, KEYS, { ...ADMISSION, now, path: '/render/dog' })
  assert.deepEqual(other, { outcome: 'refused', reason: 'another request' })
  const last = await verifyAdmission(receipt, KEYS, { ...ADMISSION, now: now - 1 })
  assert.equal(last.outcome, 'ok')
})

describe('the admission by a receipt', () => {
  for (const [note, changes, reason] of [
    ['of another project', { audience: 'gate_project_2' }, 'another project'],
    ['of another route', { route: 'ping' }, 'another route'],
    ['with another method', { method: 'GET' }, 'another request'],
    ['with another path', { path: '/render/cat' }, 'another request'],
    ['with another body', { requestDigest: `${'ab'.repeat(31)}ac` }, 'another request'],
    ['before it was issued', { now: (NOW - 61) * 1000 }, 'not valid yet'],
  ] as const) {
    test(`a receipt ${note} lets nobody in, and the refusal says why`, async () => {
      const verdict = await verifyAdmission(await sign(CLAIMS), KEYS, { ...ADMISSION, ...changes })
      assert.deepEqual(verdict, { outcome: 'refused', reason })
    })
  }

  test('a receipt from a clock that is a minute ahead lets the request in', async () => {
    const now = (NOW - 60) * 1000
    const verdict = await verifyAdmission(await sign(CLAIMS), KEYS, { ...ADMISSION, now })
    assert.equal(verdict.outcome, 'ok')
  })

  test('a receipt that is not verified lets nobody in, for the same reason', async () => {
    const receipt = await sign(CLAIMS)
    assert.deepEqual(await verifyAdmission(receipt, [], ADMISSION), { outcome: 'unknown key' })
    assert.deepEqual(await verifyAdmission('x', KEYS, ADMISSION), refused('malformed'))
  })
})

test('a receipt tells how it was paid, and how many before it were given back', async () => {
  for (const change of [{ by: 'provider' as const }, { gb: 1 }, { gb: 7 }]) {
    const receipt = { ...CLAIMS, ...change }
    assert.deepEqual(await verifyReceipt(await sign(receipt), KEYS), { outcome: 'ok', receipt })
  }
  for (const gb of [0, -1, 1.5, '1', null]) {
    const verdict = await verifyReceipt(await sign({ ...CLAIMS, gb }), KEYS)
    assert.deepEqual(verdict, refused('a claim is missing'), String(gb))
  }
})

describe('a token that is not a receipt', () => {
  test('a token of another type, algorithm or extension is not a receipt', async () => {
    const plain = await sign(CLAIMS, { typ: 'JWT' })
    const critical = await sign(CLAIMS, { crit: ['b64'], b64: true })
    const [, body, signature] = (await sign(CLAIMS)).split('.')
    const heads = ['none', 'HS256', 'Ed25519', undefined].map((alg) =>
      encoded({ alg, kid: 'k1', typ: 'gate-receipt+jwt' }),
    )
    for (const receipt of [
      plain,
      critical,
      ...heads.map((head) => [head, body, signature].join('.')),
    ]) {
      assert.deepEqual(await verifyReceipt(receipt, KEYS), refused('not a GATE receipt'))
    }
  })

  test('a token in another spelling is not a receipt, although its bytes are the same', async () => {
    let receipt = await sign(CLAIMS)
    for (let n = 0; !/[-_][^.]*$/.test(receipt); n++)
      receipt = await sign({ ...CLAIMS, jti: `r${n}` })
    assert.equal((await verifyReceipt(receipt, KEYS)).outcome, 'ok')
    const [head, body, tail = ''] = receipt.split('.')
    const plain = tail.replaceAll('-', '+').replaceAll('_', '/')
    for (const other of [`${tail}==`, plain, `${tail}.`, `${tail}.x`, `\n${tail}`, `${tail}\n`]) {
      const text = [head, body, other].join('.')
      assert.deepEqual(await verifyReceipt(text, KEYS), refused('malformed'), other)
    }
  })

  test('a token of something else than an object is not a receipt', async () => {
    for (const payload of ['x', '[]', 'null', '\u0000']) {
      const receipt = await signText(payload)
      assert.deepEqual(await verifyReceipt(receipt, KEYS), refused('a claim is missing'))
    }
  })

  test('a token with a claim that is missing or of another type is not a receipt', async () => {
    for (const claim of Object.keys(CLAIMS)) {
      for (const value of [undefined, null, [], {}, '', 1.5]) {
        const verdict = await verifyReceipt(await sign({ ...CLAIMS, [claim]: value }), KEYS)
        assert.equal(verdict.outcome, 'refused', `${claim}: ${JSON.stringify(value)}`)
      }
    }
    const by = 'hope'
    assert.equal((await verifyReceipt(await sign({ ...CLAIMS, by }), KEYS)).outcome, 'refused')
  })

  test('a token that another key signed, or that names no key of ours, is not a receipt', async () => {
    const receipt = await sign(CLAIMS)
    const other = await exportJWK((await generateKeyPair('EdDSA')).publicKey)
    const stolen = [{ kid: 'k1', x: other.x ?? '' }]
    assert.deepEqual(await verifyReceipt(receipt, stolen), refused('the signature is wrong'))
    assert.equal((await verifyReceipt(receipt, [])).outcome, 'unknown key')
    const renamed = [{ kid: 'k2', x }]
    assert.equal((await verifyReceipt(receipt, renamed)).outcome, 'unknown key')
    for (const odd of ['AAAA', '', 'no base64']) {
      const verdict = await verifyReceipt(receipt, [{ kid: 'k1', x: odd }])
      assert.deepEqual(verdict, refused('the key is not an Ed25519 key'))
    }
  })

  test('a token of up to 8192 characters is a receipt, and a longer one is none', async () => {
    const bare = (await sign(CLAIMS)).length
    const withRoom = (chars: number) => {
      const bytes = Math.floor(((chars - bare) * 3) / 4)
      return sign({ ...CLAIMS, htp: `${CLAIMS.htp}${'a'.repeat(bytes)}` })
    }
    const longest = await withRoom(MAX_RECEIPT_CHARS)
    const longer = await withRoom(MAX_RECEIPT_CHARS + 2)
    assert.deepEqual([longest.length, longer.length > MAX_RECEIPT_CHARS], [MAX_RECEIPT_CHARS, true])
    assert.equal((await verifyReceipt(longest, KEYS)).outcome, 'ok')
    assert.deepEqual(await verifyReceipt(longer, KEYS), refused('malformed'))
  })

  test('a receipt with any character changed is not a receipt', async () => {
    const receipt = await sign(CLAIMS)
    await fc.assert(
      fc.asyncProperty(mutated(receipt), async (text) => {
        if (text === receipt) return
        assert.notEqual((await verifyReceipt(text, KEYS)).outcome, 'ok')
      }),
      { numRuns: 2_000 },
    )
  })

  test('any other text is not a receipt', async () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string().map((text) => `${text}.e30.e30`),
    )
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        assert.equal((await verifyReceipt(text, KEYS)).outcome, 'refused')
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('a key set', () => {
  test('a key set gives its Ed25519 keys, and passes over the others', () => {
    const own = { kty: 'OKP', crv: 'Ed25519', kid: 'a', x, alg: 'EdDSA', use: 'sig' }
    const keys = [
      own,
      { kty: 'RSA', kid: 'b', n: 'x' },
      { ...own, kid: 'c', crv: 'X25519' },
      { ...own, kid: 'd', kty: 'EC' },
      { ...own, kid: 'e', x: 7 },
      { ...own, kid: 7 },
    ]
    assert.deepEqual(readGateKeys({ keys: [...keys, null, 'x'] }), [{ kid: 'a', x }])
    assert.deepEqual(readGateKeys({ keys: [] }), [])
    assert.equal(readGateKeys({ keys: new Array(16).fill(own) })?.length, 16)
  })

  test('a text that is not a key set is refused', () => {
    for (const json of [null, [], {}, { keys: {} }, 'x', { keys: new Array(17).fill({}) }]) {
      assert.equal(readGateKeys(json), null)
    }
    fc.assert(fc.property(fc.jsonValue(), (json) => void readGateKeys(json)))
  })
})

describe('the request digest', () => {
  const request = { project: 'gate_project_1', route: 'r', method: 'GET', path: '/a?b=1' }

  test('the request digest is the SHA-256 of the canonical JSON, the members in order', async () => {
    const bodySha256 = createHash('sha256').update('body').digest('hex')
    const text = `{"bodySha256":"${bodySha256}","method":"GET","path":"/a?b=1","project":"gate_project_1","route":"r"}`
    assert.equal(bindingText({ ...request, bodySha256 }), text)
    assert.equal(
      await gateRequestDigest({ ...request, body: new TextEncoder().encode('body') }),
      createHash('sha256').update(text).digest('hex'),
    )
  })

  test('the request digest of two requests is the same only where they are', async () => {
    const parts = fc.record({
      project: fc.string(),
      route: fc.string(),
      method: fc.string(),
      path: fc.string(),
      bodySha256: fc.string(),
    })
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        const isSame = JSON.stringify(one) === JSON.stringify(other)
        assert.equal(bindingText(one) === bindingText(other), isSame)
      }),
    )
  })
})

function refused(reason: string) {
  return { outcome: 'refused', reason }
}

function sign(claims: object, header: Record<string, unknown> = {}): Promise<string> {
  return signText(JSON.stringify(claims), header)
}

function signText(text: string, header: Record<string, unknown> = {}): Promise<string> {
  return new CompactSign(new TextEncoder().encode(text))
    .setProtectedHeader({ alg: 'EdDSA', kid: 'k1', typ: 'gate-receipt+jwt', ...header })
    .sign(privateKey)
}

function encoded(json: object): string {
  return Buffer.from(JSON.stringify(json)).toString('base64url')
}
