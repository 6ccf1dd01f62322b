/** What a listener keeps in the vault, and who of two may go on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  failedEvents,
  forgetListening,
  startListening,
  strikeOut,
} from '../../src/cli/vault/listening.ts'
import { temporaryFolder } from '../support/folder.ts'

test('how far a listener got outlives its process, and what had no answer has failed from the next start on', async (t) => {
  const place = { folder: await temporaryFolder(t) }
  const first = startListening(place, 'catch_a')
  assert.equal(first.last, null)
  first.sent(1)
  first.done(1)
  first.sent(2)
  const second = startListening(place, 'catch_a')
  assert.deepEqual([second.last, failedEvents(place, 'catch_a')], [2, [2]])
  strikeOut(place, 'catch_a', 2)
  assert.equal(startListening(place, 'catch_a').last, 2)
  assert.deepEqual(failedEvents(place, 'catch_a'), [])
})

test('a listener that another one has replaced sends nothing more, and says why', async (t) => {
  const place = { folder: await temporaryFolder(t) }
  const older = startListening(place, 'catch_a')
  older.sent(1)
  const newer = startListening(place, 'catch_a')
  for (const write of [older.sent, older.done, older.failed]) {
    assert.throws(() => write(2), /Another process forwards the webhooks of this inbox now/)
  }
  assert.equal(newer.last, 1)
  newer.sent(2)
  assert.deepEqual(failedEvents(place, 'catch_a'), [1])
})

test('what one inbox has is not what another one has, and goes when it is forgotten', async (t) => {
  const place = { folder: await temporaryFolder(t) }
  const listener = startListening(place, 'catch_a')
  listener.sent(7)
  listener.failed(7)
  assert.deepEqual(failedEvents(place, 'catch_b'), [])
  assert.equal(startListening(place, 'catch_b').last, null)
  forgetListening(place, 'catch_a')
  assert.deepEqual(failedEvents(place, 'catch_a'), [])
  assert.equal(startListening(place, 'catch_a').last, null)
})

test('what has failed is remembered in order, once, until a replay strikes it out', async (t) => {
  const place = { folder: await temporaryFolder(t) }
  const listener = startListening(place, 'catch_a')
  for (const sequence of [9, 3, 9, 11]) listener.failed(sequence)
  assert.deepEqual(failedEvents(place, 'catch_a'), [3, 9, 11])
  strikeOut(place, 'catch_a', 9)
  // The listener goes on meanwhile.
  listener.failed(12)
  assert.deepEqual(failedEvents(place, 'catch_a'), [3, 11, 12])
})
