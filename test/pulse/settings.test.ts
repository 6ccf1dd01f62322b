import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Problem } from '../../src/http/errors.ts'
import { PulseSettings } from '../../src/pulse/schema.ts'
import { readAs } from '../../src/pulse/settings.ts'

const parse = (text: string): unknown => readAs(PulseSettings, JSON.parse(text))

test('any subset of the settings is taken, to its bounds', () => {
  const good: unknown[] = [
    {},
    { name: '' },
    { name: 'x'.repeat(80) },
    { name: '😀'.repeat(80) },
    { name: '👨‍👩‍👧 ملف' },
    { description: 'two\nlines \u202e\u0000' },
    { description: '' },
    { description: '⚡'.repeat(240) },
    { description: '😀'.repeat(240) },
    { expectedIntervalSeconds: 20 },
    { expectedIntervalSeconds: 604_800 },
    { graceSeconds: 60 },
    { graceSeconds: 604_800 },
    { publicStatusEnabled: true },
    { publicStatusEnabled: false },
    {
      name: 'n',
      description: 'd',
      expectedIntervalSeconds: 300,
      graceSeconds: 90,
      publicStatusEnabled: true,
    },
  ]
  for (const settings of good) assert.deepEqual(parse(JSON.stringify(settings)), settings)
  assert.deepEqual(parse('{"graceSeconds":1e2,"expectedIntervalSeconds":20.0}'), {
    graceSeconds: 100,
    expectedIntervalSeconds: 20,
  })
})

test('settings of another shape are refused as settings', () => {
  const bad = [
    'null',
    'true',
    '1',
    '"name"',
    '[]',
    '[{}]',
    '{"surprise":1}',
    '{"__proto__":{}}',
    '{"constructor":1}',
    '{"Name":"x"}',
    '{"planId":"spark"}',
    '{"name":null}',
    '{"name":1}',
    '{"name":["x"]}',
    JSON.stringify({ name: 'x'.repeat(81) }),
    JSON.stringify({ name: '😀'.repeat(81) }),
    ...['\u0000', '\t', '\n', '\u001b[31m', '\u007f', '\u0085', '\u2028', '\u202e', '\u2066'].map(
      (control) => JSON.stringify({ name: `a${control}b` }),
    ),
    '{"name":"\\ud83d"}',
    '{"name":"\\ude00\\ud83d"}',
    JSON.stringify({ description: 'x'.repeat(241) }),
    '{"description":"\\udfff"}',
    '{"description":false}',
    '{"expectedIntervalSeconds":19}',
    '{"expectedIntervalSeconds":604801}',
    '{"expectedIntervalSeconds":20.5}',
    '{"expectedIntervalSeconds":"60"}',
    '{"expectedIntervalSeconds":null}',
    '{"expectedIntervalSeconds":-60}',
    '{"expectedIntervalSeconds":1e400}',
    '{"graceSeconds":59}',
    '{"graceSeconds":604801}',
    '{"graceSeconds":60.001}',
    '{"graceSeconds":true}',
    '{"publicStatusEnabled":1}',
    '{"publicStatusEnabled":"true"}',
    '{"publicStatusEnabled":null}',
    '{"name":"fine","graceSeconds":1}',
  ]
  for (const text of bad) assert.throws(() => parse(text), is('invalid settings'), text)
})

const is =
  (phrase: string) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.phrase === phrase
