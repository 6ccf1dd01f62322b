/** What an intent that is not paid says of itself. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderPending, renderQuote } from '../../src/gate/render.ts'
import type { IntentRow } from '../../src/gate/store.ts'
import { anIntent, T } from '../support/gate-store.ts'

const intent = (changes: Partial<IntentRow> = {}): IntentRow => ({
  ...anIntent('a', 'q'),
  ...{ state: 'open', verify_count: 0, next_verify_at: 0, ...changes },
})

test('an intent waits for its provider, or for a proof where the provider tells of no payments', () => {
  const { status, verification } = renderPending(intent(), T)
  assert.deepEqual([status, verification], ['pending', 'provider'])
  const silent = renderPending(intent({ verify_url: null }), T)
  assert.deepEqual([silent.status, silent.verification], ['proof_required', 'preimage'])
})

test('an intent expires after its last millisecond, whatever it waited for', () => {
  for (const verify_url of [null, 'https://example.com/verify']) {
    const { honoured_until: end } = intent()
    assert.notEqual(renderPending(intent({ verify_url }), end).status, 'expired')
    assert.equal(renderPending(intent({ verify_url }), end + 1).status, 'expired')
  }
})

test('an intent is settled once it is authorized', () => {
  assert.equal(renderQuote(intent()).settled, false)
  assert.equal(renderQuote(intent({ state: 'authorized' })).settled, true)
})
