import assert from 'node:assert/strict'
import { test } from 'node:test'
import { duration } from '../../src/web/lib/format.ts'
import { cronFields, SETUPS } from '../../src/web/pulse/snippets.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

test('a duration is told in its two largest units, and in whole seconds', () => {
  for (const [milliseconds, words] of [
    [-5, '0 s'],
    [999, '0 s'],
    [SECOND, '1 s'],
    [79 * SECOND, '1 min 19 s'],
    [2 * MINUTE, '2 min'],
    [HOUR - 1, '59 min 59 s'],
    [HOUR + 5 * SECOND, '1 h'],
    [3 * HOUR + 5 * MINUTE + 59 * SECOND, '3 h 5 min'],
    [24 * HOUR, '1 day'],
    [52 * HOUR + 59 * MINUTE, '2 days 4 h'],
    [48 * HOUR + MINUTE, '2 days'],
  ] as const) {
    assert.equal(duration(milliseconds), words)
  }
})

test('only what divides an hour, a day or the week has a line in crontab', () => {
  for (const [seconds, fields] of [
    [60, '* * * * *'],
    [300, '*/5 * * * *'],
    [900, '*/15 * * * *'],
    [1800, '*/30 * * * *'],
    [3600, '0 * * * *'],
    [2 * 3600, '0 */2 * * *'],
    [12 * 3600, '0 */12 * * *'],
    [86_400, '0 0 * * *'],
    [604_800, '0 0 * * 0'],
    ...[20, 30, 59, 61, 90, 7 * 60, 45 * 60, 90 * 60, 5 * 3600, 36 * 3600, 2 * 86_400].map(
      (seconds) => [seconds, null] as const,
    ),
  ] as const) {
    assert.equal(cronFields(seconds), fields, `${seconds} s`)
  }
})

test('each runner gets lines that tell the start and the exit code of a job', () => {
  const job = { url: 'https://x.example/p/pulse_1', pingToken: 'token', intervalSeconds: 300 }
  for (const [runner, snippetsOf] of Object.entries(SETUPS)) {
    for (const schedule of [null, { cron: '0 3 * * 1-5', timeZone: 'Europe/Paris' }]) {
      const text = snippetsOf({ ...job, schedule })
        .map((snippet) => snippet.text)
        .join('\n')
      assert.match(text, /\/p\/pulse_1\/start/, runner)
      assert.match(text, /\/p\/pulse_1\/\$/, `${runner}: the exit code`)
      assert.ok(text.includes('token'), runner)
      // A URL is logged by proxies.
      assert.doesNotMatch(text, /pulse_1\S*token/)
      if (runner === 'Cron')
        assert.match(text, schedule ? /^0 3 \* \* 1-5 /m : /^\*\/5 \* \* \* \* /m)
    }
  }
})
