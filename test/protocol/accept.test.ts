import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { acceptsL402, acceptsPayment, MAX_ACCEPT_CHARS } from '../../src/protocol/accept.ts'
import { fieldLines, mutated } from '../support/arbitraries.ts'

describe('acceptsPayment', () => {
  const rows: { note: string; lines: string[]; accepts: boolean }[] = [
    { note: 'no field: nobody asked', lines: [], accepts: false },
    { note: 'an empty field', lines: [''], accepts: false },
    { note: 'exactly', lines: ['lightning/charge'], accepts: true },
    { note: 'any intent', lines: ['lightning/*'], accepts: true },
    { note: 'any method', lines: ['*/charge'], accepts: true },
    { note: 'anything', lines: ['*/*'], accepts: true },
    { note: 'another method', lines: ['tempo/charge'], accepts: false },
    { note: 'another intent', lines: ['lightning/session'], accepts: false },
    { note: 'among others', lines: ['tempo/charge, lightning/charge;q=0.5'], accepts: true },
    { note: 'on another line', lines: ['tempo/charge', 'lightning/charge'], accepts: true },
    { note: 'empty elements', lines: [' ,lightning/charge,, '], accepts: true },
    { note: 'q=0 means "do not use"', lines: ['lightning/charge;q=0'], accepts: false },
    { note: 'so does q=0.000', lines: ['lightning/charge ; Q=0.000'], accepts: false },
    { note: 'a small weight is a yes', lines: ['lightning/charge;q=0.001'], accepts: true },
    {
      note: 'the exact range beats the wildcard',
      lines: ['*/*, lightning/charge;q=0'],
      accepts: false,
    },
    { note: 'wherever it stands', lines: ['lightning/charge;q=0, */*'], accepts: false },
    {
      note: 'a wildcard behind it refuses only what is not named',
      lines: ['lightning/charge, */*;q=0'],
      accepts: true,
    },
    {
      note: 'as long as it may be',
      lines: ['lightning/charge'.padEnd(MAX_ACCEPT_CHARS)],
      accepts: true,
    },
    { note: 'and against it too', lines: ['lightning/*;q=0, lightning/charge'], accepts: true },
    {
      note: 'a named method beats a named intent',
      lines: ['lightning/*;q=0, */charge'],
      accepts: false,
    },
    {
      note: 'the same range twice',
      lines: ['lightning/charge, lightning/charge;q=0'],
      accepts: false,
    },
    {
      note: 'one malformed range: the field is ignored',
      lines: ['lightning/charge, x'],
      accepts: false,
    },
    { note: 'a weight above one', lines: ['lightning/charge;q=2'], accepts: false },
    { note: 'text before the range', lines: ['a lightning/charge'], accepts: false },
    {
      note: 'the same refusal first',
      lines: ['lightning/charge;q=0, lightning/charge'],
      accepts: false,
    },
    { note: 'another parameter', lines: ['lightning/charge;x=1'], accepts: false },
    { note: 'names are case-sensitive', lines: ['Lightning/charge'], accepts: false },
    {
      note: 'too long',
      lines: [`lightning/charge,${' '.repeat(MAX_ACCEPT_CHARS)}`],
      accepts: false,
    },
  ]
  for (const { note, lines, accepts } of rows) {
    test(`acceptsPayment says ${accepts ? 'yes' : 'no'}: ${note}`, () =>
      assert.equal(acceptsPayment(lines, 'lightning', 'charge'), accepts))
  }
})

describe('acceptsL402', () => {
  const rows: { lines: string[]; accepts: boolean }[] = [
    { lines: [], accepts: false },
    { lines: ['L402'], accepts: true },
    { lines: ['lsat'], accepts: true },
    { lines: ['Basic, L402'], accepts: true },
    { lines: ['Basic', 'L402'], accepts: true },
    { lines: ['L4020'], accepts: false },
    { lines: ['XL402'], accepts: false },
    { lines: ['L402 x'], accepts: false },
    { lines: ['Payment'], accepts: false },
  ]
  for (const { lines, accepts } of rows) {
    test(`acceptsL402 says ${accepts ? 'yes' : 'no'} to ${JSON.stringify(lines)}`, () =>
      assert.equal(acceptsL402(lines), accepts))
  }
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
