import assert from 'node:assert/strict'
import { createHmac, hkdfSync } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { hex, utf8 } from '../../src/lib/bytes.ts'
import { hkdfSha256, hmacSha256 } from '../../src/protocol/hmac.ts'

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

for (const [keyBytes, messageBytes] of [
  ...[0, 63, 64, 65].map((length) => [length, 1] as const),
  ...[959, 960, 961, 100_000].map((length) => [3, length] as const),
]) {
  test(`HMAC agrees with node:crypto for ${keyBytes} bytes of key and ${messageBytes} of message`, () => {
    const [key, message] = [new Uint8Array(keyBytes).fill(7), new Uint8Array(messageBytes).fill(8)]
    const expected = createHmac('sha256', key).update(message).digest('hex')
    assert.equal(hex(hmacSha256(key, message)), expected)
  })
}

test('an HMAC stays as it is while others are computed', () => {
  const first = hmacSha256(utf8('key'), utf8('first'))
  const before = hex(first)
  hmacSha256(utf8('key'), utf8('second'))
  assert.equal(hex(first), before)
  assert.equal(first.buffer.byteLength, 32)
})
