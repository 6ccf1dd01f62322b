import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { temporaryFolder } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import { shareServer } from '../support/shared-server.ts'
import { exchange } from '../support/socket.ts'
import { until } from '../support/until.ts'
import {
  A_BODY,
  aWhisper,
  delivered,
  iso,
  openWhisperOrder,
  type Purchase,
  purchaseWhisper,
  REUSED,
  read,
  refusal,
  short,
  stored,
} from '../support/whisper.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

suite('buying a whisper', () => {
  const theServer = shareServer()

  test('a quote has exactly the documented members, and says nothing of the content', async () => {
    const server = await theServer()
    const answer = await purchaseWhisper(server, { plan: 'long' })
    assert.equal(answer.status, 402)
    assert.equal(answer.headers['cache-control'], 'no-store')
    const quote = JSON.parse(answer.text)
    assert.deepEqual(quote, {
      ...quote,
      product: 'whisper',
      planId: 'long',
      amountSats: 402,
      network: 'regtest',
    })
    assert.equal(Object.keys(quote).length, 9)
  })

  test('the capability has exactly the documented members', async () => {
    const server = await theServer()
    const before = server.clock.now()
    const whisper = await aWhisper(server)
    assert.deepEqual(Object.keys(whisper), ['product', 'publicId', 'readToken', 'expiresAt'])
    assert.match(whisper.publicId, /^whisper_[0-9A-Za-z]{22}$/)
    assert.match(whisper.readToken, /^whisper_read_[0-9A-Za-z]{49}$/)
    const life = Date.parse(whisper.expiresAt) - before
    assert.ok(life >= DAY && life < DAY + MINUTE)
  })

  test('a purchase that is not right is refused before there is an order', async (t) => {
    const server = await startServer(t)
    const now = server.clock.now()
    const spark = 64 * 1024
    const cases: [what: string, ask: Purchase, error: string][] = [
      ['no key', { key: null }, 'invalid idempotency key'],
      ['a key of 7', { key: '1234567' }, 'invalid idempotency key'],
      ['no plan', { plan: null }, 'invalid plan'],
      ['an unknown plan', { plan: 'mega' }, 'invalid plan'],
      ['a plan in another case', { plan: 'Spark' }, 'invalid plan'],
      ['an empty plan', { plan: '' }, 'invalid plan'],
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
      ...[
        '',
        'tomorrow',
        String(now + MINUTE),
        iso(server, MINUTE).slice(0, -1),
        iso(server, MINUTE).slice(0, 10),
        '2026-02-30T00:00:00Z',
        iso(server, -1),
        iso(server, DAY + MINUTE),
        '9999-12-31T23:59:59Z',
      ].map((revealAt): [string, Purchase, string] => [
        `a reveal time of "${revealAt}"`,
        { revealAt },
        'invalid reveal time',
      ]),
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

  test('a body far above its limit is refused while its sender still sends', async () => {
    const server = await theServer()
    const { port } = new URL(server.url)
    const socket = connect(Number(port), '127.0.0.1')
    let answer = ''
    socket.setEncoding('latin1').on('data', (text: string) => {
      answer += text
    })
    socket.write(
      `POST /api/payments/whisper HTTP/1.1\r\nHost: mayfly\r\nIdempotency-Key: ${randomUUID()}\r\nX-Whisper-Plan: spark\r\nContent-Type: application/octet-stream\r\nContent-Length: 99999999999\r\n\r\n`,
    )
    socket.write(Buffer.alloc(9 * 1024 * 1024))
    await until('it is refused', () => answer.endsWith('{"error":"ciphertext too large"}'))
    assert.match(answer, /^HTTP\/1\.1 400 /)
    // The rest is thrown away until the time of the request is over.
    assert.equal(socket.closed, false)
    socket.destroy()
  })

  test('a new order takes from its limit before its body is read, and nothing while none is sold', async (t) => {
    const limits = join(await temporaryFolder(t), 'limits.json')
    await writeFile(limits, JSON.stringify({ quote: { perMinute: 0.01, burst: 1 } }))
    const server = await startServer(t, { MAYFLY_RATE_LIMITS: limits, MAYFLY_SIMULATOR: 'public' })
    const ask = (headers = '') =>
      exchange(
        server.url,
        `POST /api/payments/whisper HTTP/1.1\r\nHost: x\r\nIdempotency-Key: ${randomUUID()}\r\nX-Whisper-Plan: spark\r\nContent-Type: application/octet-stream\r\nConnection: close\r\nContent-Length: 50000\r\n${headers}\r\n`,
      )
    assert.deepEqual((await ask('X-Forwarded-For: 203.0.113.1\r\n')).statuses, [503])
    assert.equal((await purchaseWhisper(server, {})).status, 402)
    assert.deepEqual((await ask()).statuses, [429])
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

  test('the same request is the same quote; another body, plan, limit or time is refused', async (t) => {
    const server = await startServer(t)
    const revealAt = iso(server, MINUTE)
    const ask = { key: randomUUID(), plan: 'standard', readLimit: 5, revealAt }
    const quote = await openWhisperOrder(server, ask)
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
    ]
    for (const other of others)
      assert.deepEqual(short(await purchaseWhisper(server, other)), REUSED)
    assert.equal((await stored(server)).orders, 1)
    assert.equal((await stored(server)).ciphertexts, 1)
  })

  test('a purchase without a read limit gets the plan’s own', async () => {
    const server = await theServer()
    const key = randomUUID()
    const quote = await openWhisperOrder(server, { key })
    assert.deepEqual(await openWhisperOrder(server, { key, readLimit: 3 }), quote)
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

  test('a whisper is replayed to its buyer until the first read', async () => {
    const server = await theServer()
    const key = randomUUID()
    const whisper = await aWhisper(server, { key })
    const answer = await purchaseWhisper(server, { key })
    assert.equal(answer.status, 200)
    assert.deepEqual(JSON.parse(answer.text), { settled: true, resource: whisper })
    await read(server, whisper)
    assert.deepEqual(short(await purchaseWhisper(server, { key })), {
      status: 404,
      text: '{"error":"already delivered"}',
    })
  })

  test('a body that breaks off, or takes too long, leaves nothing', async (t) => {
    const server = await startServer(
      t,
      {},
      {
        timeouts: { requestMs: 300, headersMs: 200, checkEveryMs: 50 },
      },
    )
    const head = `POST /api/payments/whisper HTTP/1.1\r\nHost: mayfly\r\nIdempotency-Key: ${randomUUID()}\r\nX-Whisper-Plan: spark\r\nContent-Type: application/octet-stream\r\nContent-Length: 64\r\n\r\n`
    const { port } = new URL(server.url)
    const gone = connect(Number(port), '127.0.0.1')
    gone.write(head + 'x'.repeat(40))
    gone.end()
    await once(gone.resume(), 'close')
    const slow = connect(Number(port), '127.0.0.1')
    slow.write(head + 'x'.repeat(40))
    let answer = ''
    slow.setEncoding('utf8').on('data', (text: string) => {
      answer += text
    })
    await once(slow, 'close')
    assert.match(answer, /^HTTP\/1\.1 408 /)
    assert.match(answer, /\{"error":"request timeout"\}$/)
    assert.deepEqual(await stored(server), { orders: 0, invoices: 0, ciphertexts: 0, unpaid: [] })
    assert.ok(!server.logged.some((line) => line.includes('http.failed')))
  })

  test('the quote of a scheduled whisper may be paid by a poll or by a repeat of the purchase', async () => {
    const server = await theServer()
    const key = randomUUID()
    const quote = await openWhisperOrder(server, { key })
    await server.pay(quote.bolt11)
    let answer = await purchaseWhisper(server, { key })
    await until('the repeat delivers', async () => {
      answer = await purchaseWhisper(server, { key })
      return answer.status === 200
    })
    const { resource } = JSON.parse(answer.text)
    assert.deepEqual((await read(server, resource)).body, A_BODY)
  })

  test('the quote and its bytes outlive a restart', async (t) => {
    const server = await startServer(t)
    const key = randomUUID()
    const body = randomBytes(60_000)
    const quote = await openWhisperOrder(server, { key, body })
    await server.restart()
    assert.deepEqual(await openWhisperOrder(server, { key, body }), quote)
    await server.pay(quote.bolt11)
    assert.deepEqual((await read(server, await delivered(server, quote, key))).body, body)
  })

  test('a quote that is dead is expired, and its bytes are gone', async (t) => {
    const server = await startServer(t)
    const key = randomUUID()
    await openWhisperOrder(server, { key })
    server.clock.advance(15 * MINUTE + SECOND)
    await until('the quote dies', async () => {
      const answer = await purchaseWhisper(server, { key })
      return answer.status === 404 && answer.text === '{"error":"order expired"}'
    })
    assert.deepEqual(await stored(server), { orders: 1, invoices: 1, ciphertexts: 0, unpaid: [] })
  })
})

const chunked = { 'content-length': undefined, 'transfer-encoding': 'chunked' }
