/** What is believed of a node's JSON: a field that is missing or of another type is the node's mistake. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NodeError } from '../../../src/lightning/node/error.ts'
import { jsonOf, nodeIdOf } from '../../../src/lightning/node/json-fields.ts'

const read = jsonOf('A node')
const HASH = 'ab'.repeat(32)

const malformed = (message: string) => (error: unknown) => {
  assert.ok(error instanceof NodeError)
  assert.equal(error.message, `A node: ${message}`)
  assert.equal(error.reason, 'malformed')
  assert.equal(error.answer, undefined)
  return true
}

for (const value of [null, [], [{}], 'x', 1, true, undefined]) {
  test(`${JSON.stringify(value)} is no answer, because it is not an object`, () => {
    assert.throws(() => read.object(value), malformed('an answer is not an object'))
  })
}

test('an answer is JSON with an object, and nothing else', () => {
  assert.deepEqual(read.parse('{"a":1}'), { a: 1 })
  for (const text of ['', '{', '{"a":1}x', '<html></html>']) {
    assert.throws(() => read.parse(text), malformed('an answer is not JSON'))
  }
  for (const text of ['null', '[]', '"{}"', '1']) {
    assert.throws(() => read.parse(text), malformed('an answer is not an object'))
  }
})

test('a text is a string, also an empty one', () => {
  assert.equal(read.string({ a: 'x' }, 'a'), 'x')
  assert.equal(read.string({ a: '' }, 'a'), '')
  for (const a of [undefined, null, 1, ['x'], {}]) {
    assert.throws(() => read.string({ a }, 'a'), malformed('a is missing'))
  }
})

test('a hash is 64 hex digits in lower case', () => {
  assert.equal(read.hash({ a: HASH }, 'a'), HASH)
  const wrong = [HASH.toUpperCase(), HASH.slice(1), `${HASH}a`, ` ${HASH}`, `${HASH}\n`, 'x', '']
  for (const a of [...wrong, undefined, null, 1, [HASH]]) {
    assert.throws(() => read.hash({ a }, 'a'), malformed('a is not a hash'))
  }
})

test('a yes or no is a boolean, and nothing that only counts as one', () => {
  assert.equal(read.boolean({ a: true }, 'a'), true)
  assert.equal(read.boolean({ a: false }, 'a'), false)
  for (const a of [undefined, null, 0, 1, '', 'true']) {
    assert.throws(() => read.boolean({ a }, 'a'), malformed('a is missing'))
  }
})

test('a count is an integer from 0, and may be missing', () => {
  for (const a of [0, 1, Number.MAX_SAFE_INTEGER]) assert.equal(read.count({ a }, 'a'), a)
  for (const a of [undefined, null]) assert.equal(read.count({ a }, 'a'), undefined)
  for (const a of [-1, 0.5, 2 ** 53, Number.NaN, '1', '', true, [1]]) {
    assert.throws(() => read.count({ a }, 'a'), malformed('a is not a count'))
  }
})

test('the id of a node is a compressed public key in hex, in either case', () => {
  const key = 'cd'.repeat(32)
  assert.equal(nodeIdOf(`02${key}`), `02${key}`)
  assert.equal(nodeIdOf(`03${key}`.toUpperCase()), `03${key}`)
  const wrong = [`04${key}`, `12${key}`, `02${key}c`, `x02${key}`, `02${key.slice(1)}`, key, '']
  for (const value of [...wrong, undefined, null, 2, [`02${key}`]]) {
    assert.equal(nodeIdOf(value), null)
  }
})
