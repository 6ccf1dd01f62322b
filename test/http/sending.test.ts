import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { withDisconnectSignal } from '../../src/http/sending.ts'

test('the end of a connection ends the work of the requests that are under way, and of no other', async () => {
  const socket = new Socket()
  const request = { socket } as IncomingMessage
  const signals: AbortSignal[] = []
  await withDisconnectSignal(request, async (signal) => signals.push(signal))
  const failing = withDisconnectSignal(request, async (signal) => {
    signals.push(signal)
    throw new Error('the store is away')
  })
  await assert.rejects(failing, /store is away/)
  const underWay = withDisconnectSignal(request, async (signal) => {
    signals.push(signal)
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
  socket.destroy()
  await underWay
  const late = await withDisconnectSignal(request, async (signal) => signal.aborted)
  assert.deepEqual([...signals.map(({ aborted }) => aborted), late], [false, false, true, true])
})
