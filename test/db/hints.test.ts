import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHints } from '../../src/db/hints.ts'
import {
  interestIn,
  interestText,
  isInterested,
  payloads,
  readInterest,
  readMessage,
  topicHash,
} from '../../src/db/postgres/hint-message.ts'
import { hintsContract } from '../contract/hints.ts'

hintsContract('in the process', async () => createHints())

test('a message fits into payloads that PostgreSQL takes, and comes back whole', () => {
  const topics = Array.from({ length: 4_000 }, (_, i) => topicHash(`catch_${i}`))
  const interest = interestText(interestIn(topics))
  const parts = payloads({ from: 'x'.repeat(12), topics, interest, ask: true, all: true })
  assert.ok(parts.every((part) => Buffer.byteLength(part) < 8_000))
  const read = parts.map(readMessage)
  assert.deepEqual(
    read.flatMap((message) => message?.topics ?? []),
    topics,
  )
  assert.deepEqual(read.at(-1), { from: 'x'.repeat(12), interest, ask: true, all: true })
  assert.deepEqual(payloads({ from: 'x', topics: [] }), [])
})

test('a malformed message is ignored', () => {
  for (const payload of ['', 'null', '1', '[]', '{}', '{"from":1}', '{"from":"x"', '"x"']) {
    assert.equal(readMessage(payload), null, payload)
  }
  const odd = readMessage('{"from":"x","topics":"y","interest":1,"ask":"yes","all":1}')
  assert.deepEqual(odd, { from: 'x' })
})

test('an interest covers its topics, hardly any others, and is readable from another version', () => {
  const mine = Array.from({ length: 50 }, (_, i) => topicHash(`catch_${i}`))
  const interest = readInterest(interestText(interestIn(mine)))
  assert.ok(mine.every((topic) => isInterested(interest, topic)))
  const others = Array.from({ length: 2_000 }, (_, i) => topicHash(`pulse_${i}`))
  const wrong = others.filter((topic) => isInterested(interest, topic))
  assert.ok(wrong.length < 100, `${wrong.length}`)
  assert.ok(others.every((topic) => isInterested(readInterest('AAAA'), topic)))
})
