import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { acceptsL402, acceptsPayment, MAX_ACCEPT_CHARS } from '../../src/protocol/accept.ts'
import { fieldLines, mutated } from '../support/arbitraries.ts'

/** Field lines that accept the challenge, and some that do not. */
const ACCEPTS: Record<'yes' | 'no', Record<string, string[]>> = {
  yes: {
    exactly: ['lightning/charge'],
    'any intent': ['lightning/*'],
    'any method': ['*/charge'],
    anything: ['*/*'],
    'among others': ['tempo/charge, lightning/charge;q=0.5'],
    'on another line': ['tempo/charge', 'lightning/charge'],
    'empty elements': [' ,lightning/charge,, '],
    'a small weight is a yes': ['lightning/charge;q=0.001'],
    'a wildcard behind it refuses only what is not named': ['lightning/charge, */*;q=0'],
    'as long as it may be': ['lightning/charge'.padEnd(MAX_ACCEPT_CHARS)],
    'the exact range beats the refusal of its method': ['lightning/*;q=0, lightning/charge'],
  },
  no: {
    'no field: nobody asked': [],
    'an empty field': [''],
    'another method': ['tempo/charge'],
    'another intent': ['lightning/session'],
    'q=0 means "do not use"': ['lightning/charge;q=0'],
    'so does q=0.000': ['lightning/charge ; Q=0.000'],
    'the exact range beats the wildcard': ['*/*, lightning/charge;q=0'],
    'wherever it stands': ['lightning/charge;q=0, */*'],
    'a named method beats a named intent': ['lightning/*;q=0, */charge'],
    'the same range twice': ['lightning/charge, lightning/charge;q=0'],
    'one malformed range: the field is ignored': ['lightning/charge, x'],
    'a weight above one': ['lightning/charge;q=2'],
    'text before the range': ['a lightning/charge'],
    'the same range twice, the refusal first': ['lightning/charge;q=0, lightning/charge'],
    'another parameter': ['lightning/charge;x=1'],
    'names are case-sensitive': ['Lightning/charge'],
    'too long': [`lightning/charge,${' '.repeat(MAX_ACCEPT_CHARS)}`],
  },
}
for (const [says, rows] of Object.entries(ACCEPTS)) {
  for (const [note, lines] of Object.entries(rows)) {
    test(`acceptsPayment says ${says}: ${note}`, () =>
      assert.equal(acceptsPayment(lines, 'lightning', 'charge'), says === 'yes'))
  }
}

test('acceptsL402 says yes to its names among others, and no to anything else', () => {
  for (const lines of [['L402'], ['lsat'], ['Basic, L402'], ['Basic', 'L402']])
    assert.equal(acceptsL402(lines), true, lines.join())
  for (const lines of [[], ['L4020'], ['XL402'], ['L402 x'], ['Payment']])
    assert.equal(acceptsL402(lines), false, lines.join())
})

test('any field lines are answered, whatever they hold', () => {
  const near = mutated('lightning/charge;q=0.5, */*;q=0, tempo/*').map((line) => [line])
  fc.assert(
    fc.property(fc.oneof(fieldLines, near), (lines) => {
      assert.equal(typeof acceptsPayment(lines, 'lightning', 'charge'), 'boolean')
      assert.equal(typeof acceptsL402(lines), 'boolean')
    }),
    { numRuns: 10_000 },
  )
})
