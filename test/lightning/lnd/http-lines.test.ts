/** How LND's stream is cut into lines, however it arrives. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { linesOf } from '../../../src/lightning/lnd/http.ts'

async function linesIn(chunks: (string | Buffer)[], maxBytes = 1_000): Promise<string[]> {
  async function* body() {
    for (const chunk of chunks) yield Buffer.from(chunk as string)
  }
  return Array.fromAsync(linesOf(body(), maxBytes))
}

test('the lines of a stream are the same, wherever its pieces begin and end', async () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'ü', '€', '\n') })
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(60)), async (all, cuts) => {
      const bytes = Buffer.from(all)
      const ends = [...cuts.toSorted((a, b) => a - b), bytes.length]
      const pieces = ends.map((end, i) => bytes.subarray(i === 0 ? 0 : ends[i - 1], end))
      // What follows the last line break has not ended.
      assert.deepEqual(await linesIn(pieces), all.split('\n').slice(0, -1))
    }),
  )
})

test('a line may begin with the piece, end with it, or stand alone in it', async () => {
  assert.deepEqual(await linesIn(['a', '\nb\n', 'c\n', '\n', '', 'd\ne', 'f\ng']), [
    ...['a', 'b', 'c', '', 'd', 'ef'],
  ])
})

test('a line that is too long is given as an empty one, in one piece or in several, and the next as it is', async () => {
  for (const [chunks, lines] of [
    [['12345678\n12345678\n'], ['12345678', '12345678']],
    [['123456789\n1\n'], ['', '1']],
    [['1\n123456789\n'], ['1', '']],
    [
      ['1234', '5678', '\n', '1\n'],
      ['12345678', '1'],
    ],
    [
      ['1234', '5678', '9\n1\n'],
      ['', '1'],
    ],
    [
      ['1234', '56789', '\n1\n'],
      ['', '1'],
    ],
    [
      ['123456789', '1', '2\n1', '2\n'],
      ['', '12'],
    ],
    [
      ['12\n123456789', '\n', '12345678\n'],
      ['12', '', '12345678'],
    ],
  ] as const) {
    assert.deepEqual(await linesIn([...chunks], 8), lines)
  }
})
