import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { EXIT, endingOf } from '../../src/cli/exit.ts'
import { PHRASES } from '../../src/cli/phrases.ts'
import { MayflyError } from '../../src/client/index.ts'
import { ERRORS } from '../../src/http/errors.ts'

/** The phrases that the SDK throws itself. */
const OF_THE_SDK = [
  ...['service unreachable', 'unexpected answer', 'price above the ceiling', 'invoice disagrees'],
  ...['payment failed', 'payment outcome unknown', 'paid but not collected'],
  ...['second payment refused', 'no event in time', 'inbox ended', 'invalid share code'],
  ...['password needed', 'invalid receipt', 'nothing to send'],
]

test('every phrase of the service and of the SDK has its exit code in the one table', () => {
  const told = [...Object.keys(ERRORS), ...OF_THE_SDK].sort()
  assert.deepEqual(Object.keys(PHRASES).sort(), told)
  const documented =
    readFileSync('docs/sdk.md', 'utf8') + readFileSync('src/client/errors.ts', 'utf8')
  for (const phrase of OF_THE_SDK) assert.ok(documented.includes(phrase), phrase)
})

test('the exit code tells bad input, a wait, and what is gone from other refusals', () => {
  for (const [phrase, { status }] of Object.entries(ERRORS)) {
    const ending = endingOf(new MayflyError(phrase, status), 'http://x')
    assert.ok(ending !== null && ending.sentence !== '', phrase)
    const { code } = ending
    if (status === 429 || status === 408) assert.equal(code, EXIT.later, phrase)
    if (status >= 500) assert.ok(code === EXIT.later || phrase === 'alerts unavailable', phrase)
    if (code === EXIT.usage) assert.equal(status, 400, phrase)
    if (status === 401)
      assert.ok(
        [EXIT.gone, EXIT.failed].some((one) => one === code),
        phrase,
      )
  }
  assert.equal(endingOf(new MayflyError('invalid of tomorrow', 400), '')?.code, EXIT.usage)
  assert.equal(endingOf(new MayflyError('busy of tomorrow', 503), '')?.code, EXIT.later)
})

test('what is asked too soon or sold out says for how long', () => {
  const of = (phrase: string, status: number) =>
    endingOf(new MayflyError(phrase, status, { retryAfterSeconds: 21_674 }), '')?.sentence
  assert.match(of('rate limited', 429) ?? '', /Try again in 6 h\.$/)
  assert.match(of('sold out', 503) ?? '', /Nothing was paid\. Try again in 6 h\.$/)
})
