import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { receiveBody } from '../../src/http/body.ts'
import { createMemory } from '../../src/http/memory.ts'

const EMPTY = { inbox: 0, unpaid: 0, paid: 0, message: 0, answer: 0 }

test('a peer that has gone away while its order was looked for leaves nothing held', async () => {
  const { request, response, memory, reading } = aPurchase()
  request.destroy()
  response.emit('close')
  await assert.rejects(reading('unpaid'), { phrase: 'request timeout' })
  assert.deepEqual(memory.bytesByKind(), EMPTY)
})

test('a body is in the room of what its request shows, until its answer is over', async () => {
  for (const kind of ['unpaid', 'paid'] as const) {
    const { request, memory, response, reading } = aPurchase()
    const body = reading(kind)
    request.push(Buffer.alloc(100_000))
    request.push(null)
    assert.equal((await body).length, 100_000)
    assert.deepEqual(
      Object.entries(memory.bytesByKind())
        .filter(([, bytes]) => bytes >= 100_000)
        .map(([name]) => name),
      [kind],
    )
    response.emit('close')
    assert.deepEqual(memory.bytesByKind(), EMPTY)
  }
})

/** A purchase on its way: its request, its response, and the memory that it may take. */
function aPurchase() {
  const memory = createMemory(() => '203.0.113')
  const request = new Readable({ read() {} }) as unknown as IncomingMessage
  const response = new EventEmitter() as ServerResponse
  Object.assign(request, { headers: {} })
  const reading = async (kind: 'paid' | 'unpaid') => {
    const whole = { memory, kind, network: '203.0.113', limit: 1024 * 1024 }
    return (await receiveBody({ raw: request }, { raw: response }, whole)).body
  }
  return { memory, request, response, reading }
}
