import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { readConfig } from '../../src/service/config.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import {
  assertNoRoom,
  delivered,
  openWhisperOrder,
  type Purchase,
  purchaseWhisper,
  read,
  stored,
} from '../support/whisper.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

suite('unpaid bytes', () => {
  const LIMITS = { MAYFLY_UNPAID_BYTES: '1000,32000', MAYFLY_TRUSTED_PROXIES: '127.0.0.1' }
  const of = (length: number, from: string): Purchase => ({ body: randomBytes(length), from })

  test('unpaid bytes are limited per network, before there is an invoice', async (t) => {
    const server = await startServer(t, LIMITS)
    await openWhisperOrder(server, of(600, '203.0.113.7'))
    await openWhisperOrder(server, of(400, '203.0.113.200'))
    assertNoRoom(await purchaseWhisper(server, of(30, '203.0.113.9')))
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
  })

  test('unpaid bytes leave room for others, whatever a network around many takes', async (t) => {
    const server = await startServer(t, { ...LIMITS, MAYFLY_UNPAID_BYTES: '8000,8000' })
    // An eighth of 6 000 for all bodies, and of 2 000 for small ones.
    await openWhisperOrder(server, of(400, '203.0.113.7'))
    await openWhisperOrder(server, of(350, '203.0.114.7'))
    await openWhisperOrder(server, of(250, '203.0.115.7'))
    for (const from of ['203.0.113.7', '203.0.114.7', '203.0.116.7']) {
      assertNoRoom(await purchaseWhisper(server, of(30, from)), from)
    }
    await openWhisperOrder(server, of(650, '203.1.113.7'))
  })

  test('unpaid bytes are never more than the limit, however many come at once', async (t) => {
    const server = await startServer(t, LIMITS)
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => purchaseWhisper(server, of(100, '203.0.113.7'))),
    )
    const statuses = answers.map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 402).length, 10)
    assert.equal(statuses.filter((status) => status === 429).length, 30)
  })

  test('unpaid bytes make room once they are paid, and a repeat needs none', async (t) => {
    const server = await startServer(t, LIMITS)
    const ask = { ...of(1000, '203.0.113.7'), key: randomUUID() }
    const quote = await openWhisperOrder(server, ask)
    assertNoRoom(await purchaseWhisper(server, of(30, '203.0.113.7')))
    assert.deepEqual(await openWhisperOrder(server, ask), quote)
    await server.pay(quote.bolt11)
    const whisper = await delivered(server, quote, ask.key)
    await openWhisperOrder(server, of(1000, '203.0.113.7'))
    assert.deepEqual((await read(server, whisper)).body, ask.body)
  })

  test('unpaid bytes make room once their quote is dead', async (t) => {
    const server = await startServer(t, LIMITS)
    const ask = { ...of(1000, '203.0.113.7'), key: randomUUID() }
    await openWhisperOrder(server, ask)
    server.clock.advance(15 * MINUTE + SECOND)
    await until('the quote dies', async () => (await purchaseWhisper(server, ask)).status === 404)
    await openWhisperOrder(server, of(1000, '203.0.113.7'))
  })

  test('a key that found no room is free for a smaller request', async (t) => {
    const server = await startServer(t, LIMITS)
    const key = randomUUID()
    assertNoRoom(await purchaseWhisper(server, { ...of(1001, '203.0.113.7'), key }))
    assert.equal((await purchaseWhisper(server, { ...of(999, '203.0.113.7'), key })).status, 402)
  })

  for (const value of ['', '1000', '1,2,3', '0,5', '-1,5', '1.5,2', 'a,b', '1e3,2e3', '5,']) {
    test(`the setting "${value}" is refused`, () => {
      assert.throws(
        () => readConfig({ MAYFLY_UNPAID_BYTES: value }),
        /^ConfigError: MAYFLY_UNPAID_BYTES must be two numbers of bytes from 1 to 1099511627776, comma-separated: per client network, and in all\.$/,
      )
    })
  }

  test('unpaid bytes are 64 MiB per network and 1 GiB in all by default', () => {
    assert.deepEqual(readConfig({}).unpaidBytes, { perNetwork: 64 * 2 ** 20, inAll: 2 ** 30 })
  })
})
