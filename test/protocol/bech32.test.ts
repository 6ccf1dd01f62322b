import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  bytesToWords,
  decodeBech32,
  encodeBech32,
  packWords,
  wordsToBytes,
} from '../../src/protocol/bech32.ts'

const someWords = fc.uint8Array({ max: 31, maxLength: 400 })

test('bech32 reads back every prefix and every word it wrote, in either case', () => {
  const prefixes = fc.stringMatching(/^[!-@[-~]{1,90}$/)
  fc.assert(
    fc.property(prefixes, someWords, (prefix, words) => {
      const text = encodeBech32(prefix, words)
      assert.deepEqual(decodeBech32(text), { prefix, words })
      assert.deepEqual(decodeBech32(text.toUpperCase()), { prefix, words })
    }),
  )
})

test('bech32 sees every change of one character', () => {
  const text = encodeBech32('ln', Uint8Array.of(1, 2, 3, 0, 0, 31))
  for (let at = 0; at < text.length; at++) {
    for (const other of 'qpzry9x8gf2tvdw0s3jn54khce6mua7l1b') {
      if (other === text[at]) continue
      assert.equal(decodeBech32(text.slice(0, at) + other + text.slice(at + 1)), null)
    }
  }
})

test('bech32 refuses a text without prefix, separator or checksum, in two cases or beyond ASCII', () => {
  const text = encodeBech32('k', Uint8Array.of(1, 2, 3))
  const upper = text.toUpperCase()
  assert.notEqual(decodeBech32(upper), null)
  const kelvin = upper.replace('K', '\u212a')
  assert.equal(kelvin.toLowerCase(), text)
  const noPrefix = encodeBech32('', Uint8Array.of(1, 2, 3))
  const wrong = ['', '1', 'k', 'k1', noPrefix, text.slice(2), `K${text.slice(1)}`, kelvin]
  for (const one of [...wrong, ` ${text}`, `${text}\n`, `k1${text}`]) {
    assert.equal(decodeBech32(one), null)
  }
})

test('bech32 refuses the Kelvin sign behind other letters, although it is a k in lower case', () => {
  const upper = encodeBech32('ak', Uint8Array.of(1, 2, 3)).toUpperCase()
  assert.notEqual(decodeBech32(upper), null)
  assert.equal(decodeBech32(upper.replace('K', '\u212a')), null)
})

test('bech32 refuses a character that is no digit, and a short checksum, where the sum is right', () => {
  // The checksum is made over the value that the table has for what is no digit.
  const made = encodeBech32('k', Uint8Array.of(1, 255, 3)).replace('\0', 'b')
  assert.equal(decodeBech32(made), null)
  // Five words that leave the remainder of a valid text.
  assert.equal(decodeBech32('agd1cf9jm'), null)
})

test('bech32 reads back all bytes from the words it made of them', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      assert.deepEqual(wordsToBytes(bytesToWords(bytes)), bytes)
      assert.deepEqual(packWords(bytesToWords(bytes)).subarray(0, bytes.length), bytes)
    }),
  )
})

test('bech32 takes no second set of words for the same bytes', () => {
  fc.assert(
    fc.property(someWords, (words) => {
      const bytes = wordsToBytes(words)
      if (bytes !== null) assert.deepEqual(bytesToWords(bytes), words)
    }),
  )
  assert.deepEqual(wordsToBytes(Uint8Array.of(31, 28)), Uint8Array.of(255))
  assert.equal(wordsToBytes(Uint8Array.of(31, 29)), null)
  assert.equal(wordsToBytes(Uint8Array.of(31, 28, 0)), null)
  assert.equal(wordsToBytes(Uint8Array.of(0)), null)
})

test('bech32 packs words with zero bits up to a whole byte', () => {
  assert.deepEqual(packWords(Uint8Array.of(31)), Uint8Array.of(0b1111_1000))
  assert.deepEqual(packWords(Uint8Array.of(31, 31)), Uint8Array.of(255, 0b1100_0000))
})
