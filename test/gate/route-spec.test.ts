/** What the operator reads of a route that cannot be. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPattern, matchesPattern } from '../../src/gate/patterns.ts'
import { parseRouteSpec } from '../../src/gate/route-spec.ts'

test('a route that cannot be is refused with a sentence that says which part is wrong', () => {
  const form =
    'a route reads `<id>=<method>:<path>:<sats>`, such as `render=POST:/render/*:50`; its id is 1 to 64 letters, digits, `-` and `_`'
  const method = 'the method of route a must be one of GET, POST, PUT, PATCH, DELETE'
  const path =
    'the path of route a must start with `/`, without query, dot segments, empty segments or encoded slashes; `*` stands for one segment, `**` at the end for the rest'
  const price = 'the price of route a must be whole satoshis, from 1 to 100000000'
  for (const [text, message] of [
    ['', form],
    ['a', form],
    ['=GET:/x:1', form],
    [`${'a'.repeat(65)}=GET:/x:1`, form],
    ['a b=GET:/x:1', form],
    ['a=:/x:1', method],
    ['a=get:/x:1', method],
    ['a=HEAD:/x:1', method],
    ['a=GET::1', path],
    ['a=GET:/x?y:1', path],
    ['a=GET:/x:', price],
    ['a=GET:/x:0', price],
    ['a=GET:/x:01', price],
    ['a=GET:/x:1.5', price],
    ['a=GET:/x:100000001', price],
    ['a=GET:/x:1000000000', price],
  ] as const) {
    assert.throws(() => parseRouteSpec(text), { message }, text)
  }
  assert.equal(parseRouteSpec('a=GET:/x:100000000').priceSats, 100_000_000)
  assert.equal(parseRouteSpec(`${'a'.repeat(64)}=GET:/x:1`).priceSats, 1)
})

test('a pattern has 256 characters at most, and two stars only at its end', () => {
  assert.equal(isPattern(`/${'a'.repeat(255)}`), true)
  assert.equal(isPattern(`/${'a'.repeat(256)}`), false)
  assert.equal(isPattern('/a/**'), true)
  assert.equal(isPattern('/**/a'), false)
  assert.equal(isPattern('/**'), true)
  assert.equal(matchesPattern('/a/**', '/a/b/c'), true)
  assert.equal(matchesPattern('/a/**', '/b/b/c'), false)
})
