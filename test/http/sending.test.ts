import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { withDisconnectSignal } from '../../src/http/sending.ts'

test('a client that leaves ends the work of its request, and of no other', async () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  const signals: AbortSignal[] = []
  await withDisconnectSignal(response, async (signal) => signals.push(signal))
  const failing = withDisconnectSignal(response, async (signal) => {
    signals.push(signal)
    throw new Error('the store is away')
  })
  await assert.rejects(failing, /store is away/)
  const underWay = withDisconnectSignal(response, async (signal) => {
    signals.push(signal)
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
  response.destroy()
  response.emit('close')
  await underWay
  const late = await withDisconnectSignal(response, async (signal) => signal.aborted)
  assert.deepEqual([...signals.map(({ aborted }) => aborted), late], [false, false, true, true])
  assert.equal(response.listenerCount('close'), 0)
})
