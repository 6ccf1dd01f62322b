import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { base64, base64Bytes, hex, hexBytes, utf8 } from '../../src/lib/bytes.ts'
import { l402ChallengeField, readL402Credential } from '../../src/protocol/l402.ts'
import {
  decodeIdentifier,
  encodeIdentifier,
  type L402Binding,
  type L402Identifier,
  type L402Outcome,
  type L402Request,
  l402RootKey,
  MAX_ROUTE_BYTES,
  mintL402,
  verifyL402,
} from '../../src/protocol/l402-token.ts'
import {
  decodeMacaroon,
  encodeMacaroon,
  isSignedBy,
  MAX_CAVEATS,
  MAX_MACAROON_BYTES,
  mintMacaroon,
} from '../../src/protocol/macaroon.ts'
import { fieldLines, mutated, mutatedBytes } from '../support/arbitraries.ts'
import { l402Authorization } from '../support/payer.ts'
import { vectors } from '../support/vectors.ts'

const V = vectors<{
  macaroon: {
    valid: {
      note: string
      rootKeyHex: string
      identifierHex: string
      location: string
      caveats: string[]
      signatureHex: string
      hex: string
    }[]
    judged: { note: string; rootKeyHex: string; hex: string; verdict: string }[]
  }
  token: {
    masterKeyHex: string
    rootKeyHex: string
    identifier: L402Identifier
    identifierHex: string
    binding: L402Binding
    caveats: string[]
    base64: string
  }
  identifiers: { note: string; hex: string; identifier: L402Identifier | null }[]
  authorization: {
    masterKeysHex: string[]
    /** That of most cases: they say in what theirs differs, and name one of the outcomes. */
    request: L402Request
    outcomes: Record<string, L402Outcome>
    cases: {
      note: string
      authorization: string | string[]
      request?: Partial<L402Request>
      outcome: string
    }[]
  }
  challenge: {
    note: string
    field: string
    macaroon: string
    invoice: string
  }
}>('l402')

const bytesOf = (text: string) => hexBytes(text) ?? assert.fail(text)
const masterKeys = V.authorization.masterKeysHex.map(bytesOf)
const CASES = V.authorization.cases.map(({ note, authorization, request, outcome }) => ({
  note,
  authorization: [authorization].flat(),
  request: { ...V.authorization.request, ...request },
  outcome: V.authorization.outcomes[outcome] ?? assert.fail(note),
}))

describe('a macaroon', () => {
  for (const row of V.macaroon.valid) {
    test(`a macaroon is minted, written, read and verified byte for byte: ${row.note}`, () => {
      const rootKey = bytesOf(row.rootKeyHex)
      const macaroon = mintMacaroon(rootKey, {
        location: utf8(row.location),
        identifier: bytesOf(row.identifierHex),
        caveats: row.caveats.map(utf8),
      })
      assert.equal(hex(macaroon.signature), row.signatureHex)
      assert.equal(hex(encodeMacaroon(macaroon)), row.hex)
      assert.deepEqual(decodeMacaroon(bytesOf(row.hex)), macaroon)
      assert.equal(isSignedBy(macaroon, rootKey), true)
      assert.equal(isSignedBy(macaroon, new Uint8Array(32)), false)
    })
  }

  for (const row of V.macaroon.judged) {
    test(`a macaroon is ${row.verdict}: ${row.note}`, () => {
      const macaroon = decodeMacaroon(bytesOf(row.hex))
      const verdict =
        macaroon === null
          ? 'undecodable'
          : isSignedBy(macaroon, bytesOf(row.rootKeyHex))
            ? 'signed'
            : 'unsigned'
      assert.equal(verdict, row.verdict)
    })
  }

  test('a macaroon that nobody could read back is not made', () => {
    const rootKey = new Uint8Array(32)
    const parts = { location: new Uint8Array(), identifier: new Uint8Array(66) }
    const many = Array.from({ length: MAX_CAVEATS + 1 }, () => utf8('a=b'))
    const tooMany = { name: 'TypeError', message: /too many caveats/ }
    assert.throws(() => mintMacaroon(rootKey, { ...parts, caveats: many }), tooMany)
    const tooLong = { name: 'TypeError', message: /too long/ }
    for (const length of [MAX_MACAROON_BYTES, MAX_MACAROON_BYTES + 1]) {
      const caveats = [new Uint8Array(length)]
      assert.throws(() => mintMacaroon(rootKey, { ...parts, caveats }), tooLong)
    }
  })

  test('a macaroon of another version, or without an identifier, is none', () => {
    const bytes = bytesOf(V.macaroon.valid[0]?.hex ?? assert.fail())
    assert.notEqual(decodeMacaroon(bytes), null)
    for (const version of [0, 1, 3]) {
      assert.equal(decodeMacaroon(Uint8Array.of(version, ...bytes.subarray(1))), null)
    }
    const signature = bytes.subarray(-34)
    assert.notEqual(decodeMacaroon(Uint8Array.of(2, 2, 1, 7, 0, 0, ...signature)), null)
    assert.equal(decodeMacaroon(Uint8Array.of(2, 0, 0, ...signature)), null)
  })

  test('a macaroon of exactly the largest size is made, read and carried by a credential', () => {
    const parts = { location: new Uint8Array(), identifier: new Uint8Array(66) }
    const many = Array.from({ length: MAX_CAVEATS }, () => utf8('a=b'))
    const most = mintMacaroon(new Uint8Array(32), { ...parts, caveats: many })
    assert.deepEqual(decodeMacaroon(encodeMacaroon(most)), most)
    const empty = encodeMacaroon(mintMacaroon(new Uint8Array(32), { ...parts, caveats: [] }))
    // Four bytes around a caveat: its type, two of length, its end.
    const long = [new Uint8Array(MAX_MACAROON_BYTES - empty.length - 4)]
    const bytes = encodeMacaroon(mintMacaroon(new Uint8Array(32), { ...parts, caveats: long }))
    assert.equal(bytes.length, MAX_MACAROON_BYTES)
    assert.notEqual(decodeMacaroon(bytes), null)
    const line = l402Authorization({ macaroon: base64(bytes), preimage: '00'.repeat(32) })
    assert.equal(typeof readL402Credential([line]), 'object')
  })

  test('a macaroon survives writing and reading, whatever it holds', () => {
    const bytes = fc.uint8Array({ maxLength: 300 })
    fc.assert(
      fc.property(
        bytes,
        bytes,
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: MAX_CAVEATS }),
        (location, identifier, caveats) => {
          const rootKey = Uint8Array.of(1)
          const macaroon = mintMacaroon(rootKey, {
            location: new Uint8Array(location),
            identifier: new Uint8Array(identifier),
            caveats: caveats.map((caveat) => new Uint8Array(caveat)),
          })
          assert.deepEqual(decodeMacaroon(encodeMacaroon(macaroon)), macaroon)
          assert.equal(isSignedBy(macaroon, rootKey), true)
        },
      ),
      { numRuns: 10_000 },
    )
  })

  test('a macaroon has one encoding: any bytes are refused, or written again as they were', () => {
    const good = bytesOf(V.macaroon.valid[2]?.hex ?? assert.fail())
    const grammar = fc
      .array(fc.constantFrom(0, 1, 2, 3, 4, 6, 32, 66, 127, 128, 255), { maxLength: 80 })
      .map((bytes) => Uint8Array.from([2, ...bytes]))
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), grammar, mutatedBytes(good)), (bytes) => {
        const macaroon = decodeMacaroon(bytes)
        if (macaroon !== null) assert.equal(hex(encodeMacaroon(macaroon)), hex(bytes))
      }),
      { numRuns: 10_000 },
    )
  })
})

describe('an identifier', () => {
  for (const { note, hex: text, identifier } of V.identifiers) {
    test(`an identifier is ${identifier === null ? 'refused' : 'read'}: ${note}`, () => {
      assert.deepEqual(decodeIdentifier(bytesOf(text)), identifier)
      if (identifier !== null) assert.equal(hex(encodeIdentifier(identifier)), text)
    })
  }
  test('an identifier of anything but two times 32 bytes is our mistake, and the error says where', () => {
    for (const wrong of ['', '00', 'x'.repeat(64), '00'.repeat(31), '00'.repeat(33)]) {
      for (const member of ['paymentHash', 'tokenId']) {
        const bad = { ...V.token.identifier, [member]: wrong }
        const named = { name: 'TypeError', message: new RegExp(member) }
        assert.throws(() => encodeIdentifier(bad), named)
      }
    }
  })
})

describe('a token', () => {
  const { masterKeyHex, rootKeyHex, identifier, identifierHex, binding } = V.token

  test('a token is minted byte for byte, and the same each time', () => {
    assert.equal(hex(l402RootKey(bytesOf(masterKeyHex), bytesOf(identifierHex))), rootKeyHex)
    assert.equal(mintL402(bytesOf(masterKeyHex), identifier, binding), V.token.base64)
    assert.equal(mintL402(bytesOf(masterKeyHex), identifier, binding), V.token.base64)
  })

  test('a token names its method in upper case', () => {
    const token = mintL402(bytesOf(masterKeyHex), identifier, { ...binding, method: 'post' })
    assert.equal(token, V.token.base64)
  })

  test('a token is not minted for what no request could redeem', () => {
    const wrong: Partial<L402Binding>[] = [
      { service: 'a,b' },
      { service: 'a:b' },
      { service: 'a=b' },
      { service: '' },
      { expiresAt: Number.NaN },
      { expiresAt: 1.5 },
      { bodySha256: 'AB'.repeat(32) },
      { bodySha256: `${binding.bodySha256}00` },
      { bodySha256: `00${binding.bodySha256}` },
      { route: `/${'a'.repeat(MAX_ROUTE_BYTES)}` },
    ]
    for (const change of wrong) {
      const bad = { ...binding, ...change }
      const [member = ''] = Object.keys(change)
      const named = { name: 'TypeError', message: new RegExp(member) }
      assert.throws(() => mintL402(bytesOf(masterKeyHex), identifier, bad), named)
    }
  })

  test('a token of the longest route is redeemed', () => {
    const [{ request, authorization } = assert.fail()] = CASES.filter(
      ({ outcome }) => outcome.outcome === 'ok',
    )
    const route = `/${'a'.repeat(MAX_ROUTE_BYTES - 1)}`
    const token = mintL402(bytesOf(masterKeyHex), identifier, { ...binding, route })
    const preimage = authorization[0]?.split(':')[1] ?? assert.fail()
    const line = l402Authorization({ macaroon: token, preimage })
    assert.equal(verifyL402([line], masterKeys, { ...request, route }).outcome, 'ok')
  })
})

describe('a credential', () => {
  for (const { note, authorization, request, outcome } of CASES) {
    test(`a credential is judged ${outcome.outcome}: ${note}`, () => {
      assert.deepEqual(verifyL402(authorization, masterKeys, request), outcome)
    })
  }

  test('a credential may stand among a little white space, and a longer line is refused', () => {
    const macaroon = base64(new Uint8Array(MAX_MACAROON_BYTES))
    const line = l402Authorization({ macaroon, preimage: '00'.repeat(32) })
    // 128 characters for all but the macaroon: scheme, colon, preimage.
    const longest = line.padEnd(macaroon.length + 128)
    assert.equal(typeof readL402Credential([longest]), 'object')
    assert.equal(readL402Credential([`${longest} `]), 'malformed')
  })

  test('a credential is forged when there is no key at all', () => {
    const { authorization, request } =
      CASES.find(({ outcome }) => outcome.outcome === 'ok') ?? assert.fail()
    assert.deepEqual(verifyL402(authorization, [], request), {
      outcome: 'invalid',
      paymentHash: null,
    })
  })
})

const { field, macaroon, invoice } = V.challenge
test('a challenge is rendered exactly as every client can read it', () => {
  assert.equal(l402ChallengeField({ macaroon, invoice }), field)
})

describe('any input', () => {
  const { authorization, request, outcome } =
    CASES.find((row) => row.outcome.outcome === 'ok') ?? assert.fail()
  const line = authorization[0] ?? assert.fail()
  const [token = '', preimage = ''] = line.slice('L402 '.length).split(':')
  const bytes = base64Bytes(token) ?? assert.fail()
  const nearLine = mutated(line).map((text) => [text])
  const nearToken = mutatedBytes(bytes).map((m) => [`L402 ${base64(m)}:${preimage}`])

  test('any input as credential is read or refused, and what is read can be written and read again', () => {
    fc.assert(
      fc.property(fc.oneof(fieldLines, nearLine), (lines) => {
        const reading = readL402Credential(lines)
        if (typeof reading === 'string') return
        const { macaroon, preimage } = reading
        const written = l402Authorization({ macaroon: base64(macaroon), preimage })
        assert.deepEqual(readL402Credential([written]), reading)
      }),
      { numRuns: 10_000 },
    )
  })

  test('any input near a good credential is refused unless what is signed is untouched', () => {
    const signed = decodeMacaroon(bytes) ?? assert.fail()
    fc.assert(
      fc.property(fc.oneof(nearLine, nearToken), (lines) => {
        const verdict = verifyL402(lines, masterKeys, request)
        if (verdict.outcome !== 'ok') return
        assert.deepEqual(verdict, outcome)
        const reading = readL402Credential(lines)
        assert.ok(typeof reading === 'object')
        const { location: _, ...rest } = decodeMacaroon(reading.macaroon) ?? signed
        const { location: __, ...untouched } = signed
        assert.deepEqual(rest, untouched)
      }),
      { numRuns: 10_000 },
    )
  })

  test('any appended caveats narrow a token or spoil it, and never open another request', () => {
    const { masterKeyHex, identifier, identifierHex, binding } = V.token
    const rootKey = l402RootKey(bytesOf(masterKeyHex), bytesOf(identifierHex))
    const name = fc.constantFrom(
      ...['services', 'catch_valid_until', 'aud', 'order', 'plan', 'method', 'route'],
      ...['body_sha256', 'preimage', 'other_valid_until', 'ip', ''],
    )
    const value = fc.constantFrom('', '0', '1', 'PUT', 'whisper:0', '/x', '99999999999', preimage)
    const caveat = fc.oneof(
      fc.tuple(name, value).map(([n, v]) => utf8(`${n}=${v}`)),
      fc.uint8Array({ maxLength: 20 }),
    )
    fc.assert(
      fc.property(fc.array(caveat, { minLength: 1, maxLength: 3 }), (appended) => {
        const { location, caveats } = decodeMacaroon(bytes) ?? assert.fail()
        const macaroon = mintMacaroon(rootKey, {
          location,
          identifier: encodeIdentifier(identifier),
          caveats: [...caveats, ...appended.map((bytesOfOne) => new Uint8Array(bytesOfOne))],
        })
        const lines = [`L402 ${base64(encodeMacaroon(macaroon))}:${preimage}`]
        const others: L402Request[] = [
          { ...request, method: 'PUT' },
          { ...request, route: '/x' },
          { ...request, service: 'whisper' },
          { ...request, now: binding.expiresAt },
        ]
        for (const other of others) {
          assert.notEqual(verifyL402(lines, masterKeys, other).outcome, 'ok')
        }
        verifyL402(lines, masterKeys, request)
      }),
      { numRuns: 1_000 },
    )
  })
})
