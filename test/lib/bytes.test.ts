import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { test } from 'node:test'
import { base62, base62Number } from '../../src/lib/base62.ts'
import { base64, base64Bytes, base64url, hex, hexBytes } from '../../src/lib/bytes.ts'

/** All lengths that there are, and the values at both ends. */
const SAMPLES = Array.from({ length: 70 }, (_, length) => [
  new Uint8Array(length),
  new Uint8Array(length).fill(255),
  new Uint8Array(randomBytes(length)),
  new Uint8Array(randomBytes(length)).fill(0, 0, randomInt(length + 1)),
]).flat()

test('bytes are spelled as Node does, and read back', () => {
  for (const bytes of SAMPLES) {
    const buffer = Buffer.from(bytes)
    assert.equal(hex(bytes), buffer.toString('hex'))
    assert.equal(base64(bytes), buffer.toString('base64'))
    assert.equal(base64url(bytes), buffer.toString('base64url'))
    assert.deepEqual(hexBytes(hex(bytes).toUpperCase()), bytes)
    assert.deepEqual(base64Bytes(base64(bytes)), bytes)
    assert.deepEqual(base64Bytes(base64url(bytes)), bytes)
  }
})

for (const text of ['a', '0g', 'g0', '0x', ' 00', '0\u0660', '00\u0100']) {
  test(`hex is not read from ${JSON.stringify(text)}`, () => {
    assert.equal(hexBytes(text), null)
  })
}

for (const text of [
  ...['A', 'AAAAA', '=', '==', '===', 'A===', 'AA=', 'AAA==', 'AAAA=', 'AAAA=='],
  ...['AB==', 'AAB=', 'AB', 'AAB', 'A=A=', 'AA==AA', 'AA A', 'AAA\n', 'AA*A', 'AA\u212aA'],
]) {
  test(`base64 is not read from ${JSON.stringify(text)}`, () => {
    assert.equal(base64Bytes(text), null)
  })
}

test('base62 is written as one number, in as many digits as its width can need', () => {
  const digits = [...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz']
  for (const bytes of SAMPLES) {
    const text = base62(bytes)
    const value = [...text].reduce((sum, digit) => sum * 62n + BigInt(digits.indexOf(digit)), 0n)
    assert.equal(value, BigInt(`0x0${hex(bytes)}`))
    assert.equal(text.length, Math.ceil((bytes.length * 8) / Math.log2(62)))
  }
  assert.deepEqual(
    [base62Number(0, 6), base62Number(61, 6), base62Number(2 ** 32 - 1, 6)],
    ['000000', '00000z', '4gfFC3'],
  )
})
