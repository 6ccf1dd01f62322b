import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { textOf } from '../../../src/web/content/charset.ts'
import { jsonLines } from '../../../src/web/content/json-lines.ts'
import { mediaOf } from '../../../src/web/content/media.ts'

const written = (text: string): string =>
  [...jsonLines(text)]
    .map(({ depth, tokens }) => '  '.repeat(depth) + tokens.map((token) => token.text).join(''))
    .join('\n')

suite('the text of a body', () => {
  test('JSON is indented as JSON.stringify does, whatever it is', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat({ max: 3 }), (json, space) => {
        const value = JSON.parse(json)
        assert.equal(written(JSON.stringify(value, null, space)), JSON.stringify(value, null, 2))
      }),
      { numRuns: 500 },
    )
  })

  test('numbers and repeated names of JSON stay as they were sent', () => {
    const text = '{"id":12345678901234567890,"n":1.0,"n":-1E+2,"e":"\\u0041"}'
    assert.equal(
      written(text),
      '{\n  "id": 12345678901234567890,\n  "n": 1.0,\n  "n": -1E+2,\n  "e": "\\u0041"\n}',
    )
  })

  test('brackets that open lines are paired with those that close them', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        let open = 0
        for (const line of jsonLines(json)) {
          if (line.closes) open--
          assert.equal(line.depth, open)
          if (line.opens) open++
        }
        assert.equal(open, 0)
      }),
    )
  })

  test('text is read in the charset that its sender names, and what is none is said', () => {
    const cases: [hex: string, type: string, text: string | null, remark: RegExp | null][] = [
      ['636166c3a9', 'text/plain', 'café', null],
      ['636166e9', 'text/plain; charset=ISO-8859-1', 'café', /Read as windows-1252/],
      ['82b1', 'text/plain;charset="Shift_JIS"', 'こ', /Read as shift_jis/],
      ['fffe4100', 'application/octet-stream', 'A', /Read as utf-16le/],
      ['efbbbf41', 'text/plain', 'A', null],
      ['41', 'text/plain; charset=klingon', 'A', /does not know its charset/],
      ['41ff', 'text/plain; charset=utf-8', 'A\ufffd', /some of its bytes are not/],
      ['41ff', 'application/octet-stream', null, null],
      ['4100ff', 'application/json', null, null],
    ]
    for (const [hex, type, expected, remark] of cases) {
      const decoded = textOf(new Uint8Array(Buffer.from(hex, 'hex')), mediaOf(type))
      assert.equal(decoded?.text ?? null, expected, type)
      if (remark) assert.match(decoded?.remark ?? '', remark)
      else assert.equal(decoded?.remark ?? null, null)
    }
  })
})
