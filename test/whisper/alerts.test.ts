import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readAlert } from '../../src/whisper/alerts.ts'

const NOW = 1_800_000_012_345
const SECOND = 1_000

test('the time at which a read is told is spread over nearly a minute, so that it does not betray the moment', () => {
  const delays = Array.from(
    { length: 400 },
    () => (readAlert('whisper_x', NOW).notBefore ?? 0) - NOW,
  )
  const [least, most] = [Math.min(...delays), Math.max(...delays)]
  assert.ok(least >= 60 * SECOND && least < 70 * SECOND, `${least}`)
  assert.ok(most <= 115 * SECOND && most > 105 * SECOND, `${most}`)
})
