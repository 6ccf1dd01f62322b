import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isPublicAddress } from '../../src/protocol/ip-address.ts'
import vectors from '../vectors/lnurl.json' with { type: 'json' }

for (const address of vectors.ssrf.ips.public) {
  test(`${address} is public`, () => assert.equal(isPublicAddress(address), true))
}

for (const address of vectors.ssrf.ips.blocked) {
  test(`${JSON.stringify(address)} is not public`, () =>
    assert.equal(isPublicAddress(address), false))
}

test('an IPv4 address inside of an IPv6 one is not public', () => {
  fc.assert(
    fc.property(fc.ipV4(), (ipv4) => {
      assert.equal(isPublicAddress(`::ffff:${ipv4}`), false)
      assert.equal(isPublicAddress(`::${ipv4}`), false)
      assert.equal(isPublicAddress(`64:ff9b::${ipv4}`), false)
      assert.equal(isPublicAddress(`2002:${hexGroups(ipv4)}::`), false)
    }),
  )
})

test('every way to write an IPv6 address is judged alike', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 }),
      (groups) => {
        const spelled = groups.map((group) => group.toString(16))
        const padded = spelled.map((group) => group.padStart(4, '0').toUpperCase())
        // The URL parser writes the shortest form.
        const shortest = new URL(`http://[${spelled.join(':')}]/`).hostname.slice(1, -1)
        const judged = isPublicAddress(spelled.join(':'))
        assert.equal(isPublicAddress(padded.join(':')), judged)
        assert.equal(isPublicAddress(shortest), judged)
      },
    ),
  )
})

test('any text is judged, and only what is an address can be public', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0123456789abcdef:.%[]x ') }), (text) => {
      const isPublic = isPublicAddress(text)
      const isAddress = URL.canParse(`http://${text.includes(':') ? `[${text}]` : text}/`)
      if (isPublic) assert.ok(isAddress, text)
    }),
    { numRuns: 10_000 },
  )
})

function hexGroups(ipv4: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number)
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}
