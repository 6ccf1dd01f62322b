import assert from 'node:assert/strict'
import { test } from 'node:test'
import { quotable } from '../../src/lib/quotable.ts'

test('a message of a node is quoted without what may be a secret or an invoice, without control characters, and not in length', () => {
  const table: [text: string, quoted: string][] = [
    ['no such invoice', 'no such invoice'],
    ['x'.repeat(39), 'x'.repeat(39)],
    ['x'.repeat(40), '…'],
    [`rune ${'aZ0+/=_-'.repeat(9)}: no`, 'rune …: no'],
    [`${'ab'.repeat(32)} ${'cd'.repeat(32)}`, '… …'],
    ['a\nb\tc\u0000d\u007fe', 'a b c d e'],
    ['für', 'f r'],
    ['a~b c', 'a~b c'],
    ['…', '…'],
    ['word '.repeat(50), 'word '.repeat(40)],
  ]
  for (const [text, quoted] of table) assert.equal(quotable(text), quoted)
})
