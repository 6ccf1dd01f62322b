import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { isToken, type TokenKind } from '../../src/lib/ids.ts'
import { isTokenOf, tokenFromSeed, tokenHash } from '../../src/secrets/tokens.ts'

const KINDS: TokenKind[] = [
  'catch_owner',
  'catch_ingest',
  'whisper_read',
  'pulse_owner',
  'pulse_ping',
  'gate_key',
]
const seed = new Uint8Array(32).fill(7)
const otherSeed = new Uint8Array(32).fill(8)
const owner = tokenFromSeed('catch_owner', seed)

test('a seed gives the same token of a kind each time', () => {
  assert.equal(tokenFromSeed('catch_owner', new Uint8Array(seed)), owner)
})

test('a token stays the same from release to release', () => {
  assert.deepEqual(
    { owner, ingest: tokenFromSeed('catch_ingest', seed) },
    {
      owner: 'catch_owner_jWb585jvNg0TifzGLEYlyf7sFvhAwWSpQs18J2uOTun0EnCpK',
      ingest: 'catch_ingest_XxCjZJk1pt6bshrU9FCqYVzgF4g4It8aXC1a4JcqLLl1ij2Er',
    },
  )
})

test('every kind and every seed gives a well-formed token of its own', () => {
  const tokens = [seed, otherSeed].flatMap((from) =>
    KINDS.map((kind) => ({ kind, token: tokenFromSeed(kind, from) })),
  )
  assert.equal(new Set(tokens.map(({ token }) => token)).size, tokens.length)
  assert.equal(new Set(tokens.map(({ token }) => token.slice(-49))).size, tokens.length)
  for (const { kind, token } of tokens) {
    assert.ok(isToken(kind, token), token)
    assert.equal(token.length, kind.length + 1 + 49)
  }
})

test('a token shows nothing of its seed', () => {
  const bytes = Buffer.from(owner, 'ascii')
  assert.equal(bytes.includes(Buffer.from(seed)), false)
  assert.equal(owner.includes(Buffer.from(seed).toString('hex')), false)
})

test('the stored form of a token is its SHA-256', () => {
  assert.deepEqual(tokenHash(owner), createHash('sha256').update(owner).digest())
})

test('a token is accepted for its kind and its hash alone', () => {
  const stored = tokenHash(owner)
  const typo = `${owner.slice(0, 20)}${owner[20] === 'a' ? 'b' : 'a'}${owner.slice(21)}`
  const asked: [string, TokenKind, string, Uint8Array, boolean][] = [
    ['the token', 'catch_owner', owner, stored, true],
    ['with a typo', 'catch_owner', typo, stored, false],
    ['as another kind', 'catch_ingest', owner, stored, false],
    ['of another kind', 'catch_owner', tokenFromSeed('catch_ingest', seed), stored, false],
    ['of another seed', 'catch_owner', tokenFromSeed('catch_owner', otherSeed), stored, false],
    ['against another hash', 'catch_owner', owner, tokenHash(`${owner}x`), false],
    ['in upper case', 'catch_owner', owner.toUpperCase(), stored, false],
    ['empty', 'catch_owner', '', stored, false],
  ]
  for (const [what, kind, token, hash, isAccepted] of asked) {
    assert.equal(isTokenOf(kind, token, hash), isAccepted, what)
  }
})
