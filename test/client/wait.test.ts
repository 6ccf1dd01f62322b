import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { wait } from '../../src/client/wait.ts'

test('a pause leaves nothing on the signal of its caller, who may pause for days', async () => {
  const { signal } = new AbortController()
  for (let i = 0; i < 20; i++) await wait(0, signal)
  assert.deepEqual(getEventListeners(signal, 'abort'), [])
})
