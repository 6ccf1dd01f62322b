import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { query } from '../support/store.ts'
import { until } from '../support/until.ts'
import {
  type Answer,
  assertNoRoom,
  aWhisper,
  delivered,
  iso,
  openWhisperOrder,
  type Purchase,
  purchaseWhisper,
  type Quote,
  REUSED,
  read,
  refusal,
  send,
  short,
  stored,
} from '../support/whisper.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

suite('buying a whisper', () => {
  const theServer = shareServer()

  test('a purchase that is not right is refused before there is an order', async (t) => {
    const server = await startServer(t)
    const spark = 64 * 1024
    const cases: [what: string, ask: Purchase, error: string][] = [
      ['no key', { key: null }, 'invalid idempotency key'],
      ['a key of 7', { key: '1234567' }, 'invalid idempotency key'],
      ['no plan', { plan: null }, 'invalid plan'],
      ['a name of every object', { plan: 'constructor' }, 'invalid plan'],
      ['two plans', { headers: { 'x-whisper-plan': ['spark', 'spark'] } }, 'invalid plan'],
      ...['0', '-1', '4', '403', '1.0', '1e0', '+1', '01', '0x1', 'one', '', '1 2', '1,1'].map(
        (readLimit): [string, Purchase, string] => [
          `a read limit of "${readLimit}"`,
          { readLimit },
          'invalid read limit',
        ],
      ),
      ['a limit above the plan', { plan: 'standard', readLimit: 43 }, 'invalid read limit'],
      ['a limit above all plans', { plan: 'long', readLimit: 403 }, 'invalid read limit'],
      [
        'two read limits',
        { headers: { 'x-whisper-read-limit': ['1', '1'] } },
        'invalid read limit',
      ],
      ...['', 'tomorrow', iso(server, -1), iso(server, DAY + MINUTE), '9999-12-31T23:59:59Z'].map(
        (revealAt): [string, Purchase, string] => [
          `a reveal time of "${revealAt}"`,
          { revealAt },
          'invalid reveal time',
        ],
      ),
      [
        'two reveal times',
        { headers: { 'x-whisper-reveal-at': [iso(server, MINUTE), iso(server, MINUTE)] } },
        'invalid reveal time',
      ],
      ['no body', { body: Buffer.alloc(0) }, 'invalid ciphertext'],
      [
        'no body and no type',
        { body: Buffer.alloc(0), headers: { 'content-type': undefined } },
        'invalid ciphertext',
      ],
      ['29 bytes', { body: Buffer.alloc(29) }, 'invalid ciphertext'],
      ['a byte above the plan', { body: Buffer.alloc(spark + 1) }, 'ciphertext too large'],
      [
        'a byte above every plan',
        { plan: 'long', body: Buffer.alloc(8 * 1024 * 1024 + 1) },
        'ciphertext too large',
      ],
      [
        'a byte above the plan, in chunks',
        { body: Buffer.alloc(spark + 1), headers: chunked },
        'ciphertext too large',
      ],
      [
        'a byte above every plan, in chunks',
        { plan: 'long', body: Buffer.alloc(8 * 1024 * 1024 + 1), headers: chunked },
        'ciphertext too large',
      ],
      ['JSON', { headers: { 'content-type': 'application/json' } }, 'unsupported media type'],
      ['no type', { headers: { 'content-type': undefined } }, 'unsupported media type'],
      [
        'a multipart body',
        { headers: { 'content-type': 'multipart/form-data; boundary=x' } },
        'unsupported media type',
      ],
      ['a coded body', { headers: { 'content-encoding': 'gzip' } }, 'unsupported media type'],
      [
        'an unknown protocol',
        { headers: { 'x-payment-protocol': 'barter' } },
        'unknown payment protocol',
      ],
    ]
    for (const [what, ask, error] of cases) {
      assert.deepEqual(short(await purchaseWhisper(server, ask)), refusal(error), what)
    }
    assert.deepEqual(await stored(server), { orders: 0, invoices: 0, ciphertexts: 0, unpaid: [] })
  })

  test('a purchase may have every bound itself', async () => {
    const server = await theServer()
    const cases: Purchase[] = [
      { body: randomBytes(30) },
      { body: randomBytes(64 * 1024) },
      { plan: 'standard', body: randomBytes(1024 * 1024) },
      { plan: 'long', body: randomBytes(8 * 1024 * 1024) },
      { body: randomBytes(64 * 1024), headers: chunked },
      { readLimit: 1 },
      { readLimit: 3 },
      { plan: 'standard', readLimit: 42 },
      { plan: 'long', readLimit: 402 },
      { revealAt: iso(server, MINUTE) },
      { revealAt: iso(server, DAY - MINUTE) },
      { revealAt: iso(server, MINUTE).replace('Z', '+00:00') },
      { headers: { 'content-encoding': 'identity' } },
      { headers: { 'content-type': 'Application/Octet-Stream' } },
    ]
    for (const ask of cases) assert.equal((await purchaseWhisper(server, ask)).status, 402)
    const [whisper, body] = [await aWhisper(server, cases[3]), cases[3]?.body]
    assert.deepEqual((await read(server, whisper)).body, body)
  })

  test('the same request is the same quote; another body, plan, limit, time or receipt is refused', async (t) => {
    const server = await startServer(t)
    const revealAt = iso(server, MINUTE)
    const ask = { key: randomUUID(), plan: 'standard', readLimit: 5, revealAt }
    const quote = await openWhisperOrder(server, ask)
    assert.equal(quote.amountSats, 121)
    assert.deepEqual(await openWhisperOrder(server, ask), quote)
    // The same moment, spelled otherwise.
    const spelled = revealAt.replace('Z', '-00:00')
    assert.deepEqual(await openWhisperOrder(server, { ...ask, revealAt: spelled }), quote)
    const { readLimit: _, ...withoutLimit } = ask
    const { revealAt: __, ...withoutTime } = ask
    const others: Purchase[] = [
      { ...ask, plan: 'long' },
      { ...ask, readLimit: 4 },
      withoutLimit,
      { ...ask, revealAt: iso(server, 2 * MINUTE) },
      withoutTime,
      { ...ask, body: randomBytes(64) },
      { ...ask, headers: { 'x-whisper-receipt': 'on' } },
    ]
    for (const other of others)
      assert.deepEqual(short(await purchaseWhisper(server, other)), REUSED)
    assert.equal((await stored(server)).orders, 1)
    assert.equal((await stored(server)).ciphertexts, 1)
    const key = randomUUID()
    const unlimited = await openWhisperOrder(server, { key })
    assert.deepEqual(await openWhisperOrder(server, { key, readLimit: 3 }), unlimited)
  })

  test('a repeat stays valid when its reveal time has come', async (t) => {
    const server = await startServer(t)
    const ask = { key: randomUUID(), revealAt: iso(server, MINUTE) }
    const quote = await openWhisperOrder(server, ask)
    server.clock.advance(2 * MINUTE)
    assert.deepEqual(await openWhisperOrder(server, ask), quote)
    await server.pay(quote.bolt11)
    const whisper = await delivered(server, quote, ask.key)
    assert.equal((await purchaseWhisper(server, ask)).status, 200)
    assert.equal((await read(server, whisper)).status, 200)
    assert.deepEqual(
      short(await purchaseWhisper(server, { ...ask, key: randomUUID() })),
      refusal('invalid reveal time'),
    )
  })

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

  test('as many of 60 at once are quoted as there is room for, and what is paid or dead makes room', async (t) => {
    const server = await startServer(t, { MAYFLY_UNPAID_BYTES: '8000,8000' })
    const answers = await Promise.all(
      Array.from({ length: 60 }, () => purchaseWhisper(server, { body: randomBytes(100) })),
    )
    const [quoted, refused] = [402, 429].map((status) =>
      answers.filter((answer) => answer.status === status),
    ) as [Answer[], Answer[]]
    // An eighth of the common 6 000, and of the 2 000 for small bodies.
    assert.deepEqual([quoted.length, refused.length], [9, 51])
    const { orders, ciphertexts, unpaid } = await stored(server)
    assert.deepEqual([orders, ciphertexts, unpaid], [9, 9, [['127.0.0', 900]]])
    const quotes = quoted.map(({ text }) => JSON.parse(text) as Quote)
    await Promise.all(quotes.slice(0, 3).map(({ bolt11 }) => server.pay(bolt11)))
    const left = async () => (await stored(server)).unpaid
    await until('they settle', async () => isDeepStrictEqual(await left(), [['127.0.0', 600]]))
    server.clock.advance(16 * MINUTE)
    for (const { orderId } of quotes.slice(3)) {
      const asked = () => send(`${server.url}/api/payments/${orderId}`, {})
      await until('the others die', async () => (await asked()).status === 404)
    }
    assert.deepEqual(await left(), [])
    assert.equal((await stored(server)).ciphertexts, 3)
    const parts = await query(server, 'select sum(byte_count) as bytes from whisper_unpaid')
    assert.equal(Number(parts[0]?.bytes), 0)
  })
})

const chunked = { 'content-length': undefined, 'transfer-encoding': 'chunked' }
