import assert from 'node:assert/strict'
import { createHmac, hkdfSync } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { hex, utf8 } from '../../src/lib/bytes.ts'
import { hkdfSha256, hmacSha256 } from '../../src/protocol/hmac.ts'

// RFC 4231 §4.2, §4.3, §4.7: a short key, a text, a key longer than the block.
const rows: [Uint8Array, string, string][] = [
  [
    new Uint8Array(20).fill(0x0b),
    'Hi There',
    'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  ],
  [
    utf8('Jefe'),
    'what do ya want for nothing?',
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  ],
  [
    new Uint8Array(131).fill(0xaa),
    'Test Using Larger Than Block-Size Key - Hash Key First',
    '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
  ],
]
for (const [key, message, mac] of rows) {
  test(`HMAC agrees with RFC 4231: ${message}`, () =>
    assert.equal(hex(hmacSha256(key, utf8(message))), mac))
}

test('HMAC agrees with node:crypto for any key and message', () => {
  const bytes = fc.uint8Array({ maxLength: 200 })
  fc.assert(
    fc.property(bytes, bytes, (key, message) => {
      const expected = createHmac('sha256', key).update(message).digest('hex')
      assert.equal(hex(hmacSha256(key, message)), expected)
    }),
    { numRuns: 10_000 },
  )
})

test('HKDF agrees with node:crypto for any secret and use', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.string(), (secret, info) => {
      const expected = Buffer.from(hkdfSync('sha256', secret, new Uint8Array(), info, 32))
      assert.equal(hex(hkdfSha256(secret, info)), expected.toString('hex'))
    }),
  )
})

for (const length of [0, 63, 64, 65]) {
  test(`HMAC agrees with node:crypto for a key of ${length} bytes`, () => {
    const key = new Uint8Array(length).fill(7)
    const expected = createHmac('sha256', key).update('x').digest('hex')
    assert.equal(hex(hmacSha256(key, utf8('x'))), expected)
  })
}

for (const length of [959, 960, 961, 100_000]) {
  test(`HMAC agrees with node:crypto for a message of ${length} bytes`, () => {
    const message = new Uint8Array(length).fill(7)
    const expected = createHmac('sha256', 'key').update(message).digest('hex')
    assert.equal(hex(hmacSha256(utf8('key'), message)), expected)
  })
}

test('an HMAC stays as it is while others are computed', () => {
  const first = hmacSha256(utf8('key'), utf8('first'))
  const before = hex(first)
  hmacSha256(utf8('key'), utf8('second'))
  assert.equal(hex(first), before)
  assert.equal(first.buffer.byteLength, 32)
})
