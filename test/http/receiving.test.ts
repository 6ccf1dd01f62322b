import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { LIMITS } from '../../src/http/limits.ts'
import { createMemory } from '../../src/http/memory.ts'
import { type Receiving, receive } from '../../src/http/paid/receiving.ts'

const EMPTY = { inbox: 0, unpaid: 0, paid: 0, message: 0, answer: 0 }
const NEW = { orderId: null, isProven: false, maxBodyBytes: 1024 * 1024 }
const KNOWN = { ...NEW, orderId: 'order_0000000000000000000000' }

test('a peer that goes away while its order is looked for leaves nothing held', async () => {
  const { request, response, memory, reading } = aPurchase({
    expected: async () => {
      request.destroy()
      response.emit('close')
      await new Promise(setImmediate)
      return NEW
    },
  })
  await assert.rejects(reading(), { phrase: 'request timeout' })
  assert.deepEqual(memory.bytesByKind(), EMPTY)
})

test('a body is in the room of what its request shows, until its answer is over', async () => {
  for (const [room, expected] of [
    ['unpaid', NEW],
    ['unpaid', KNOWN],
    ['paid', { ...KNOWN, isProven: true }],
    // Of an order that the store has lost: the payment is proven all the same.
    ['paid', { ...NEW, isProven: true }],
  ] as const) {
    const { request, memory, response, reading } = aPurchase({ expected: async () => expected })
    const body = reading()
    request.push(Buffer.alloc(100_000))
    request.push(null)
    assert.equal((await body).length, 100_000)
    assert.deepEqual(
      Object.entries(memory.bytesByKind())
        .filter(([, bytes]) => bytes >= 100_000)
        .map(([name]) => name),
      [room],
    )
    response.emit('close')
    assert.deepEqual(memory.bytesByKind(), EMPTY)
  }
})

test('a new order asks its limit before a byte is read, a known one its own, and a proven payment asks no limit', async () => {
  for (const [limits, expected] of [
    [['quote 203.0.113'], NEW],
    [[`poll ${KNOWN.orderId}`], KNOWN],
    [[], { ...NEW, isProven: true }],
  ] as const) {
    const asked: string[] = []
    const { request, reading } = aPurchase({
      expected: async () => expected,
      take: async (limit, key) => {
        assert.equal(request.readableFlowing, null)
        asked.push(`${limit.name} ${key}`)
      },
    })
    request.push(null)
    await reading()
    assert.deepEqual(asked, limits)
  }
})

test('a body for a new order is not read while nothing is sold, and one that is paid for is', async () => {
  const closed = { isSelling: () => false }
  const fresh = aPurchase({ ...closed, expected: async () => NEW })
  await assert.rejects(fresh.reading(), { phrase: 'checkout unavailable' })
  const paid = aPurchase({ ...closed, expected: async () => ({ ...KNOWN, isProven: true }) })
  paid.request.push(null)
  assert.equal((await paid.reading()).length, 0)
})

test('a small body takes no room, and its order is not looked for before it is there', async () => {
  const { request, reading } = aPurchase({
    maxBodyBytes: 4096,
    expected: () => Promise.reject(new Error('nobody asked')),
  })
  request.push(null)
  assert.equal((await reading()).length, 0)
})

test('a body above the current limit is read up to the limit of its order', async () => {
  const { request, reading } = aPurchase({
    maxBodyBytes: 64,
    hasOwnLimit: true,
    expected: async () => ({ orderId: 'order_1', isProven: true, maxBodyBytes: 500 }),
  })
  request.push(Buffer.alloc(500))
  request.push(null)
  assert.equal((await reading()).length, 500)
})

/** A purchase on its way: its request, its response, and the memory that it may take. */
function aPurchase(asked: Partial<Receiving>) {
  const memory = createMemory(() => '203.0.113')
  const request = new Readable({ read() {} }) as unknown as IncomingMessage
  const response = new EventEmitter() as ServerResponse
  Object.assign(request, { headers: {} })
  const reading = () =>
    receive(request, response, {
      memory,
      clientNetwork: '203.0.113',
      maxBodyBytes: 1024 * 1024,
      hasOwnLimit: false,
      expected: async () => NEW,
      isSelling: () => true,
      admit: async () => {},
      quote: LIMITS.quote,
      take: async () => undefined,
      ...asked,
    })
  return { memory, request, response, reading }
}
