import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXIT, endingOf } from '../../src/cli/exit.ts'
import { PHRASES } from '../../src/cli/phrases.ts'
import { MayflyError, SDK_PHRASES } from '../../src/client/errors.ts'
import type { MayflyPhrase } from '../../src/client/index.ts'
import { ERRORS, type Phrase } from '../../src/http/errors.ts'

test('every phrase of the service and of the SDK has its exit code in the one table', () => {
  const told = [...Object.keys(ERRORS), ...SDK_PHRASES].sort()
  assert.deepEqual(Object.keys(PHRASES).sort(), told)
})

test('the exit code tells bad input, a wait, and what is gone from other refusals', () => {
  for (const phrase of Object.keys(ERRORS) as Phrase[]) {
    const { status } = ERRORS[phrase]
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
  assert.equal(
    endingOf(new MayflyError('invalid of tomorrow' as MayflyPhrase, 400), '')?.code,
    EXIT.usage,
  )
  assert.equal(
    endingOf(new MayflyError('busy of tomorrow' as MayflyPhrase, 503), '')?.code,
    EXIT.later,
  )
})

test('what is asked too soon or sold out says for how long', () => {
  const of = (phrase: MayflyPhrase, status: number) =>
    endingOf(new MayflyError(phrase, status, { retryAfterSeconds: 21_674 }), '')?.sentence
  assert.match(of('rate limited', 429) ?? '', /Try again in 6 h\.$/)
  assert.match(of('sold out', 503) ?? '', /Nothing was paid\. Try again in 6 h\.$/)
})
