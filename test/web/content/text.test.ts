import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { textOf } from '../../../src/web/content/charset.ts'
import { indented } from '../../../src/web/content/json.ts'
import { mediaOf } from '../../../src/web/content/media.ts'

suite('the text of a body', () => {
  test('JSON is indented as JSON.stringify does, whatever it is', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat({ max: 3 }), (json, space) => {
        const value = JSON.parse(json)
        assert.equal(indented(JSON.stringify(value, null, space)), JSON.stringify(value, null, 2))
      }),
      { numRuns: 500 },
    )
  })

  test('numbers and repeated names of JSON stay as they were sent', () => {
    const text = '{"id":12345678901234567890,"n":1.0,"n":-1E+2,"e":"\\u0041"}'
    assert.equal(
      indented(text),
      '{\n  "id": 12345678901234567890,\n  "n": 1.0,\n  "n": -1E+2,\n  "e": "\\u0041"\n}',
    )
  })

  test('JSON is cut at the end of a line, however deep it is', () => {
    assert.equal(indented('[1,22,3]', 8), '[\n  1,\n  22,')
    assert.ok(indented('['.repeat(100_000) + ']'.repeat(100_000), 1_000).length < 1_100)
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
