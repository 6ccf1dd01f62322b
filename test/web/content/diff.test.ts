import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { diffLines } from '../../../src/web/content/diff.ts'

const lines = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 })

suite('the comparison of lines', () => {
  test('the changes lead from one to the other', () => {
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        const changes = diffLines(before, after) ?? []
        const without = (kind: string) =>
          changes.filter((change) => change.kind !== kind).map(({ line }) => line)
        assert.deepEqual(without('added'), before)
        assert.deepEqual(without('removed'), after)
        if (JSON.stringify(before) === JSON.stringify(after))
          assert.ok(changes.every(({ kind }) => kind === 'same'))
      }),
      { numRuns: 1000 },
    )
  })

  test('one changed line among many is one removed and one added, however many there are', () => {
    const before = Array.from({ length: 100_000 }, (_, index) => `line ${index}`)
    const changes = diffLines(before, before.with(50_000, 'other')) ?? []
    assert.deepEqual(
      changes.filter(({ kind }) => kind !== 'same'),
      [
        { kind: 'removed', line: 'line 50000' },
        { kind: 'added', line: 'other' },
      ],
    )
  })

  test('lists that are too long and too different are not compared', () => {
    const before = Array.from({ length: 3_000 }, (_, index) => `a ${index}`)
    assert.equal(
      diffLines(
        before,
        before.map((line) => `${line}!`),
      ),
      null,
    )
  })
})
