import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseRevealAt } from '../../src/whisper/reveal-at.ts'

const SAME = Date.UTC(2026, 1, 28, 12, 0, 0)

const right: [text: string, time: number][] = [
  ['2026-02-28T12:00:00Z', SAME],
  ['2026-02-28T12:00Z', SAME],
  ['2026-02-28t12:00:00z', SAME],
  ['2026-02-28T12:00:00.000Z', SAME],
  ['2026-02-28T12:00:00+00:00', SAME],
  ['2026-02-28T12:00:00-00:00', SAME],
  ['2026-02-28T14:00:00+02:00', SAME],
  ['2026-02-28T06:30:00-05:30', SAME],
  ['2026-03-01T01:59:00+13:59', SAME],
  ['2026-02-28T12:00:00.1Z', SAME + 100],
  ['2026-02-28T12:00:00.123999999Z', SAME + 123],
  ['2028-02-29T00:00:00Z', Date.UTC(2028, 1, 29)],
  ['0099-01-01T00:00:00Z', Date.parse('0099-01-01T00:00:00Z')],
]
for (const [text, time] of right) {
  test(`the time ${text} is read`, () => {
    assert.equal(parseRevealAt(text), time)
  })
}

const wrong = [
  '',
  'now',
  '1772280000000',
  '2026-02-28',
  '2026-02-28T12:00:00',
  '2026-02-28 12:00:00Z',
  '2026-02-28T12Z',
  '2026-02-28T12:00:00.Z',
  '2026-02-28T12:00:00,5Z',
  '2026-02-28T12:00:00.0000000001Z',
  '2026-02-28T12:00:00+0200',
  '2026-02-28T12:00:00+02',
  '2026-02-28T12:00:00+24:00',
  '2026-02-28T12:00:00+02:60',
  '2026-02-28T12:00:00 Z',
  ' 2026-02-28T12:00:00Z',
  '2026-02-28T12:00:00Z\n',
  '2026-02-29T12:00:00Z',
  '2026-04-31T12:00:00Z',
  '2026-00-01T12:00:00Z',
  '2026-13-01T12:00:00Z',
  '2026-01-00T12:00:00Z',
  '2026-01-32T12:00:00Z',
  '2026-02-28T24:00:00Z',
  '2026-02-28T12:60:00Z',
  '2016-12-31T23:59:60Z',
  '+002026-02-28T12:00:00Z',
  '-000001-02-28T12:00:00Z',
  '٢٠٢٦-02-28T12:00:00Z',
  'Sat, 28 Feb 2026 12:00:00 GMT',
]
for (const text of wrong) {
  test(`the time ${JSON.stringify(text)} is refused`, () => {
    assert.equal(parseRevealAt(text), null)
  })
}

test('every time is read as Date writes it', () => {
  const years = { min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }
  fc.assert(
    fc.property(fc.date(years), (date) => {
      assert.equal(parseRevealAt(date.toISOString()), date.getTime())
    }),
  )
})
