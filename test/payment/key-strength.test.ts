/** Who guesses the key of an order can open it first, and collect what another pays for. */
import assert from 'node:assert/strict'
import { createHash, randomBytes, randomInt, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { isIdempotencyKey } from '../../src/payment/idempotency.ts'
import { isStrongKey } from '../../src/payment/key-strength.ts'
import { vectors } from '../support/vectors.ts'

type Key = { key: string; note: string }
const { strong, weak } = vectors<{ strong: Key[]; weak: Key[] }>('key-strength')

/** Enough to see how often a format is misjudged, and little enough to take a moment. */
const SAMPLES = 2000
/** A misjudged random key costs a proof of payment; one in a hundred is what was measured. */
const MOST_WEAK = 0.03
/** Of a hash of 32 digits one in 64 has the bits of a UUID v4 by chance. */
const MOST_STRONG_MD5 = 0.04

const DIGITS = '0123456789'
const LOWER = 'abcdefghijklmnopqrstuvwxyz'
const UPPER = LOWER.toUpperCase()
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

for (const { key, note } of strong) {
  test(`nobody guesses ${note}: ${key}`, () => {
    assert.deepEqual([isIdempotencyKey(key), isStrongKey(key)], [true, true])
  })
}

for (const { key, note } of weak) {
  test(`somebody may guess ${note}: ${key}`, () => {
    assert.deepEqual([isIdempotencyKey(key), isStrongKey(key)], [true, false])
  })
}

const RANDOM: Record<string, () => string> = {
  'UUID v4': () => randomUUID(),
  'UUID v4 without dashes': () => randomUUID().replaceAll('-', ''),
  'UUID v7': () => uuid('7', Date.now().toString(16).padStart(12, '0')),
  ULID: () => crockford(Date.now(), 10) + of(CROCKFORD, 16),
  KSUID: () => `2${of(DIGITS + UPPER + LOWER, 26)}`,
  'nanoid(21)': () => of(`${DIGITS}${UPPER}${LOWER}_-`, 21),
  cuid2: () => of(LOWER, 1) + of(DIGITS + LOWER, 23),
  '16 bytes in base64': () => randomBytes(16).toString('base64'),
  '16 bytes in base64url': () => randomBytes(16).toString('base64url'),
  '24 bytes in base64': () => randomBytes(24).toString('base64'),
  '32 bytes in base64': () => randomBytes(32).toString('base64'),
  '16 bytes in base32': () => `${of(`${UPPER}234567`, 25)}${of('AEIMQUY4', 1)}======`,
  '24 bytes in hex': () => randomBytes(24).toString('hex'),
  'the style of Stripe': () => `pi_${of(DIGITS + UPPER + LOWER, 24)}`,
  'the style of GitHub': () => `ghp_${of(DIGITS + UPPER + LOWER, 36)}`,
}

for (const [name, make] of Object.entries(RANDOM)) {
  for (const [where, inside] of Object.entries({
    alone: (key: string) => key,
    'in a longer key': (key: string) => `purchase-17:${key}`,
  })) {
    test(`random keys are strong: ${name} ${where}`, () => {
      const share = shareOf(
        (key) => !isStrongKey(key),
        () => inside(make()),
      )
      assert.ok(share <= MOST_WEAK, `${share * 100} % are taken for weak`)
    })
  }
}

const KNOWN: Record<string, () => string> = {
  ...Object.fromEntries(
    ['1', '2', '3', '5', '6', '8'].map((version) => [`UUID v${version}`, () => uuid(version)]),
  ),
  'SHA-1': () => hashed('sha1'),
  'SHA-224': () => hashed('sha224'),
  'SHA-256': () => hashed('sha256'),
  'SHA-384': () => hashed('sha384'),
  'SHA-512': () => hashed('sha512'),
  'SHA-1 in a longer key': () => `invoice ${hashed('sha1')}-2`,
  'SHA-256 after a word': () => `invoice${hashed('sha256')}`,
  'an ObjectId': () => randomBytes(12).toString('hex'),
  'an xid': () => `c${of('0123456789abcdefghijklmnopqrstuv', 19)}`,
  'two short hex numbers': () =>
    `cart_${randomBytes(6).toString('hex')}_user_${randomBytes(6).toString('hex')}`,
  'a long number': () => of(DIGITS, 30),
  'a number counted up': () => `Mayfly-Purchase-Order-${of(DIGITS, 6)}`,
}

for (const [name, make] of Object.entries(KNOWN)) {
  test(`a key that others may know is never strong: ${name}`, () => {
    assert.equal(shareOf(isStrongKey, make), 0)
  })
}

test('a key that others may know is never strong: MD5, but for those that look like a UUID v4', () => {
  const share = shareOf(isStrongKey, () => hashed('md5'))
  assert.ok(share <= MOST_STRONG_MD5, `${share * 100} % are taken for strong`)
})

test('words and numbers are weak, whatever stands between them and in any case', () => {
  const words = 'Order purchase Invoice retry Customer item session Checkout shop Payment'.split(
    ' ',
  )
  const word = () => words[randomInt(words.length)] ?? ''
  const share = shareOf(isStrongKey, () => {
    const parts = Array.from({ length: 5 }, () => (randomInt(3) ? word() : of(DIGITS, 4)))
    const key = parts.join(['-', '_', '', '.', ':', ' '][randomInt(6)])
    return [key, key.toLowerCase(), key.toUpperCase()][randomInt(3)] ?? ''
  })
  assert.equal(share, 0)
})

test('a key is judged within a moment, whatever it is made of', () => {
  const hostile = ['a', '-', '0', '1:', 'ab.', 'a@', '%', '=', 'sha1-', '::', '0x', 'Aa0-'].map(
    (part) => part.repeat(128).slice(0, 128),
  )
  for (const key of hostile) assert.equal(isStrongKey(key), false, key)
})

function shareOf(is: (key: string) => boolean, make: () => string): number {
  let count = 0
  for (let i = 0; i < SAMPLES; i++) if (is(make())) count++
  return count / SAMPLES
}

function of(alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')
}

function crockford(number: number, length: number): string {
  let text = ''
  for (let rest = number; text.length < length; rest = Math.floor(rest / 32)) {
    text = CROCKFORD[rest % 32] + text
  }
  return text
}

/** With these first 12 digits, or random ones. */
function uuid(version: string, start = randomBytes(6).toString('hex')): string {
  const rest = randomBytes(9).toString('hex')
  const variant = '89ab'[randomInt(4)]
  return `${start.slice(0, 8)}-${start.slice(8)}-${version}${rest.slice(0, 3)}-${variant}${rest.slice(3, 6)}-${rest.slice(6)}`
}

function hashed(algorithm: string): string {
  return createHash(algorithm).update(randomBytes(8)).digest('hex')
}

test('a random UUID v4 is strong, but for one of millions', () => {
  // Written out once: nothing repeats in them that a person would write.
  const unlucky = [
    '10052f23-876e-4d57-8c3b-4199c04cb742',
    'da2ed65e-726a-450b-b749-02fabbbbb74b',
    'f6423564-2356-4d79-a497-7442b611f5e8',
    'cc473e9b-cecc-4767-9c24-09aa65e9bc15',
  ]
  for (const key of unlucky) assert.ok(isStrongKey(key), key)
})
