import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { authScheme, serialiseChallenge } from '../../src/protocol/auth-params.ts'

const rows: [string, string | null][] = [
  ['Payment abc', 'payment'],
  [' L402\tabc', 'l402'],
  ['LSAT', 'lsat'],
  ['L402,abc', null],
  ['', null],
  ['"x" y', null],
]
for (const [line, scheme] of rows) {
  test(`authScheme finds ${scheme ?? 'no scheme'} in ${JSON.stringify(line)}`, () =>
    assert.equal(authScheme(line), scheme))
}

describe('serialiseChallenge', () => {
  test('serialiseChallenge writes quoted strings in the given order and leaves out what is undefined', () => {
    assert.equal(
      serialiseChallenge('L402', { macaroon: 'M==', version: undefined, invoice: 'ln bc' }),
      'L402 macaroon="M==", invoice="ln bc"',
    )
  })
  for (const value of ['"', '\\', '\t', '\n', '\x7f', '\xe9', '€']) {
    test(`serialiseChallenge refuses ${JSON.stringify(value)} in a value, without quoting it`, () => {
      assert.throws(() => serialiseChallenge('A', { a: `x${value}` }), {
        name: 'TypeError',
        message: 'auth-param a would need an escape',
      })
    })
  }
  test('serialiseChallenge refuses a name that a client would read otherwise', () => {
    assert.throws(() => serialiseChallenge('A', { 'x-foo': 'b' }), TypeError)
    assert.throws(() => serialiseChallenge('A', { Foo: 'b' }), TypeError)
    assert.throws(() => serialiseChallenge('A B', { foo: 'b' }), TypeError)
  })
})
