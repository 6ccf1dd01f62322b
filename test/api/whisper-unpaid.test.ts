import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { startServer } from '../support/server.ts'
import {
  assertNoRoom,
  openWhisperOrder,
  type Purchase,
  purchaseWhisper,
  stored,
} from '../support/whisper.ts'

suite('unpaid bytes', () => {
  const LIMITS = { MAYFLY_UNPAID_BYTES: '1000,32000', MAYFLY_TRUSTED_PROXIES: '127.0.0.1' }
  const of = (length: number, from: string): Purchase => ({ body: randomBytes(length), from })

  test('unpaid bytes are limited per network, before there is an invoice', async (t) => {
    const server = await startServer(t, LIMITS)
    await openWhisperOrder(server, of(600, '203.0.113.7'))
    await openWhisperOrder(server, of(400, '203.0.113.200'))
    const key = randomUUID()
    assertNoRoom(await purchaseWhisper(server, { ...of(30, '203.0.113.9'), key }))
    await openWhisperOrder(server, of(470, '2001:db8:1::1'))
    await openWhisperOrder(server, of(530, '2001:db8:1:ffff::2'))
    assertNoRoom(await purchaseWhisper(server, of(30, '2001:db8:1:2::1')))
    await openWhisperOrder(server, of(30, '192.0.2.1'))
    assert.deepEqual(await stored(server), {
      orders: 5,
      invoices: 5,
      ciphertexts: 5,
      unpaid: [
        ['192.0.2', 30],
        ['2001:db8:1', 1000],
        ['203.0.113', 1000],
      ],
    })
    // The key that found no room is as good as new.
    const { status } = await purchaseWhisper(server, { ...of(30, '192.0.2.9'), key })
    assert.equal(status, 402)
  })
})
