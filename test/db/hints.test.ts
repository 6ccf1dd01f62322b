import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHints } from '../../src/db/hints.ts'
import { hintsContract } from '../contract/hints.ts'

hintsContract('in the process', async () => createHints())

test('a topic is gone with its last listener', () => {
  const hints = createHints()
  const stops = [1, 2].map(() => hints.listen('inbox', () => undefined))
  for (const stop of stops) {
    assert.equal(hints.isIdle(), false)
    stop?.()
  }
  assert.equal(hints.isIdle(), true)
})

test('a listener that stops twice takes nobody else with it', () => {
  const hints = createHints()
  let heard = 0
  const stop = hints.listen('inbox', () => undefined)
  stop?.()
  hints.listen('inbox', () => heard++)
  stop?.()
  hints.notify('inbox')
  assert.equal(heard, 1)
})
