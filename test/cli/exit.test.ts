import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BudgetError, EXIT, endingOf } from '../../src/cli/exit.ts'
import { MayflyError, SDK_PHRASES } from '../../src/client/errors.ts'
import { type MayflyPhrase, WalletError } from '../../src/client/index.ts'
import { ERRORS, type Phrase } from '../../src/protocol/errors.ts'

/** Each phrase of the service and of the SDK, under the exit code that scripts get. */
const CODES: Record<number, readonly MayflyPhrase[]> = {
  1: [
    'alerts unavailable',
    'cross-site request refused',
    'foreign origin',
    'give-back refused',
    'invalid receipt',
    'method not allowed',
    'network refused',
    'no credits',
    'no event in time',
    'not revealed',
    'paid but not collected',
    'payment outcome unknown',
    'proof of payment required',
    'second payment refused',
    'simulator is local',
    'wrong preimage',
  ],
  2: [
    'unsupported media type',
    'invalid idempotency key',
    'unknown payment protocol',
    'invalid receipt option',
    'idempotency key reused with a different request',
    'ciphertext too large',
    'invalid binding',
    'invalid ciphertext',
    'invalid destinations',
    'invalid plan',
    'invalid query',
    'invalid read limit',
    'invalid request body',
    'invalid reveal time',
    'invalid settings',
    'invalid share code',
    'invalid switch',
    'malformed proof',
    'nothing to send',
    'password needed',
    'request too large',
  ],
  3: [
    'payment required',
    'invalid payment credential',
    'invoice disagrees',
    'invoice expired',
    'order expired',
    'payment failed',
    'payment not verified',
    'price above the ceiling',
    'price disagrees',
  ],
  4: [
    'invalid L402 credential',
    'already delivered',
    'cannot be extended',
    'catch unavailable',
    'inbox ended',
    'intent mismatch',
    'invalid project capability',
    'not found',
    'order not found',
    'order refunded',
    'unauthorized',
  ],
  5: [
    'checkout unavailable',
    'internal error',
    'not ready',
    'rate limited',
    'request timeout',
    'service unavailable',
    'service unreachable',
    'sold out',
    'unexpected answer',
  ],
}

test('every phrase of the service and of the SDK has its exit code, and a sentence', () => {
  const told = Object.values(CODES).flat()
  assert.deepEqual(told.toSorted(), [...Object.keys(ERRORS), ...SDK_PHRASES].sort())
  for (const [code, phrases] of Object.entries(CODES)) {
    for (const phrase of phrases) {
      const status = phrase in ERRORS ? ERRORS[phrase as Phrase].status : 0
      const ending = endingOf(new MayflyError(phrase, status), 'http://x')
      assert.deepEqual(
        [phrase, ending?.code, ending?.sentence !== ''],
        [phrase, Number(code), true],
      )
    }
  }
})

test('a phrase of a newer service has the exit code of its status', () => {
  const of = (status: number) =>
    endingOf(new MayflyError('of tomorrow' as MayflyPhrase, status), '')
  assert.deepEqual(
    [400, 403, 404, 429, 503].map((status) => of(status)?.code),
    [2, 1, 4, 5, 5],
  )
})

test('what is asked too soon or sold out says for how long', () => {
  const of = (phrase: MayflyPhrase, status: number) =>
    endingOf(new MayflyError(phrase, status, { retryAfterSeconds: 21_674 }), '')?.sentence
  assert.match(of('rate limited', 429) ?? '', /Try again in 6 h\.$/)
  assert.match(of('sold out', 503) ?? '', /No invoice was made\. .* Try again in 6 h\.$/)
})

test('of a purchase that may be paid no ending says that nothing was paid, or exits as not paid', () => {
  for (const cause of [
    new WalletError('LND could not be asked', 'not paid'),
    new WalletError('LND is still paying', 'unknown'),
    new BudgetError('The price is 9 sat, and 3 are left, so nothing was paid.'),
  ]) {
    const ending = endingOf(new MayflyError('payment outcome unknown', 0, { cause }), '')
    assert.equal(ending?.code, EXIT.failed)
    assert.match(ending?.sentence ?? '', /may have been paid/)
    assert.doesNotMatch(ending?.sentence ?? '', /did not pay|othing was paid[^ ]?$/)
  }
})
