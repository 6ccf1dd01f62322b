import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MayflyError } from '../../src/client/errors.ts'
import { isGone } from '../../src/web/lib/keys.ts'

test('a key is gone when the service says so, and not when it is busy, away or asks for proof of anything', () => {
  for (const [phrase, status] of [
    ['unauthorized', 401],
    ['not found', 404],
  ] as const) {
    assert.equal(isGone(new MayflyError(phrase, status)), true, phrase)
  }
  for (const [phrase, status] of [
    ['service unreachable', 0],
    ['invalid settings', 400],
    ['request too large', 413],
    ['rate limited', 429],
    ['internal error', 500],
    ['service unavailable', 503],
  ] as const) {
    assert.equal(isGone(new MayflyError(phrase, status)), false, phrase)
  }
  assert.equal(isGone(new TypeError('fetch failed')), false)
})
