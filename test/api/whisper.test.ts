import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite, test } from 'node:test'
import { MayflyError, parseWhisperCode, sealWhisper } from '../../src/client/index.ts'
import { readConfig } from '../../src/config.ts'
import { utf8, utf8Text } from '../../src/lib/bytes.ts'
import { newId, tokenOf } from '../../src/lib/ids.ts'
import { parseChallenges } from '../../src/protocol/auth-params.ts'
import { l402Challenges, serialiseL402Credential } from '../../src/protocol/l402.ts'
import { paymentChallenges, serialisePaymentCredential } from '../../src/protocol/payment-auth.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import {
  A_BODY,
  type Answer,
  aQuote,
  aWhisper,
  delivered,
  type Purchase,
  purchase,
  read,
  send,
} from '../support/whisper.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
const NOT_FOUND = { status: 404, text: '{"error":"not found"}' }
const REUSED = {
  status: 400,
  text: '{"error":"idempotency key reused with a different request"}',
}

const short = ({ status, text }: Answer) => ({ status, text })
const refusal = (error: string) => ({ status: 400, text: JSON.stringify({ error }) })
const iso = (server: TestServer, fromNow: number) =>
  new Date(server.clock.now() + fromNow).toISOString()

test('a stranger shares a secret, and its reader opens it', async (t) => {
  const server = await startServer(t)
  const shared = await server.mayfly.buyWhisper({
    planId: 'spark',
    data: utf8('the door code is 4711'),
    name: 'door.txt',
    mediaType: 'text/plain',
    readLimit: 1,
    onInvoice: ({ bolt11 }) => server.pay(bolt11),
  })
  const code = parseWhisperCode(shared.code)
  assert.deepEqual(
    [shared.product, shared.publicId, shared.readToken, code?.hasPassword],
    ['whisper', code?.publicId, code?.readToken, false],
  )
  const opened = await server.mayfly.readWhisper(`  ${shared.code}\n`)
  assert.deepEqual(
    [utf8Text(opened.data), opened.name, opened.mediaType],
    ['the door code is 4711', 'door.txt', 'text/plain'],
  )
  await assert.rejects(server.mayfly.readWhisper(shared.code), mayflyError('not found', 404))
})

test('a password is asked for before a read is spent, and the service sees neither', async (t) => {
  const server = await startServer(t)
  const shared = await server.mayfly.buyWhisper({
    planId: 'spark',
    data: utf8('the door code is 4711'),
    password: 'seven bees',
    readLimit: 1,
    onInvoice: ({ bolt11 }) => server.pay(bolt11),
  })
  await assert.rejects(server.mayfly.readWhisper(shared.code), mayflyError('password needed', 0))
  const { data } = await server.mayfly.readWhisper(shared.code, 'seven bees')
  assert.equal(utf8Text(data), 'the door code is 4711')
  await assert.rejects(server.mayfly.readWhisper('x'), mayflyError('invalid share code', 0))
})

test('an interrupted purchase is taken up with the same sealed bytes and key', async (t) => {
  const server = await startServer(t)
  const purchase = {
    planId: 'spark',
    sealed: await sealWhisper({ data: utf8('once') }),
    idempotencyKey: randomUUID(),
  } as const
  const broken = server.mayfly.buyWhisper({
    ...purchase,
    async onInvoice({ bolt11 }) {
      await server.pay(bolt11)
      throw new Error('the battery died')
    },
  })
  await assert.rejects(broken, /battery/)
  const shared = await server.mayfly.buyWhisper({
    ...purchase,
    onInvoice: () => assert.fail('it was paid before'),
  })
  const { data } = await server.mayfly.readWhisper(shared.code)
  assert.equal(utf8Text(data), 'once')
})

suite('the catalogue', () => {
  test('says exactly what is on sale', async (t) => {
    const server = await startServer(t)
    const { products } = await server.mayfly.catalog()
    const plan = (
      planId: string,
      priceSats: number,
      durationLabel: string,
      bestFor: string,
      limits: { readLimit: number; maxCiphertextBytes: number },
    ) => ({ planId, priceSats, durationLabel, bestFor, available: true, ...limits })
    assert.deepEqual(products.whisper, {
      description:
        'Bytes that were encrypted before they came here, read a bounded number of times, from a set time on. Simulator: no real money moves.',
      clientEncryption: 'AES-256-GCM',
      plans: [
        plan('spark', 21, '24 hours', 'One password to one person', {
          readLimit: 3,
          maxCiphertextBytes: 65_536,
        }),
        plan('standard', 121, '7 days', 'A document for a team', {
          readLimit: 42,
          maxCiphertextBytes: 1_048_576,
        }),
        plan('long', 402, '30 days', 'A file for many readers', {
          readLimit: 402,
          maxCiphertextBytes: 8_388_608,
        }),
      ],
    })
  })

  for (const [plan, why] of [
    [{ readLimit: 403 }, 'a read limit above 402'],
    [{ readLimit: 0 }, 'no reads'],
    [{ maxCiphertextBytes: 29 }, 'a ciphertext below 30'],
    [{ maxCiphertextBytes: 2 ** 40 }, 'a ciphertext that no memory holds'],
    [{ reads: 3 }, 'an unknown field'],
  ] as const) {
    test(`with ${why} stops the start`, async (t) => {
      const file = await aCatalog(t, { whisper: { spark: plan } })
      await assert.rejects(
        startServer(t, { MAYFLY_CATALOG: file }),
        /MAYFLY_CATALOG: whisper\.spark/,
      )
    })
  }

  test('an unavailable plan is not sold, and one already quoted is', async (t) => {
    const environment: Record<string, string> = {}
    const server = await startServer(t, environment)
    const key = randomUUID()
    const quote = await aQuote(server, { key })
    environment.MAYFLY_CATALOG = await aCatalog(t, {
      whisper: {
        spark: { available: false, readLimit: 2, maxCiphertextBytes: 30 },
        standard: { maxCiphertextBytes: 30 },
        long: { maxCiphertextBytes: 64 },
      },
    })
    await server.stop()
    await server.restart()
    assert.deepEqual(short(await purchase(server)), refusal('invalid plan'))
    // Without a read limit the order's own plan decides, not the one on sale now.
    assert.deepEqual(await aQuote(server, { key }), quote)
    assert.deepEqual(await aQuote(server, { key, readLimit: 3 }), quote)
    assert.deepEqual(short(await purchase(server, { key, readLimit: 2 })), REUSED)
    await server.pay(quote.bolt11)
    const whisper = await delivered(server, quote, key)
    for (const status of [200, 200, 200, 404]) {
      assert.equal((await read(server, whisper)).status, status)
    }
  })
})

suite('buying', () => {
  test('a quote has exactly the documented members, and says nothing of the content', async (t) => {
    const server = await startServer(t)
    const answer = await purchase(server, { plan: 'long' })
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
    assert.equal(Object.keys(quote).length, 8)
  })

  test('the capability has exactly the documented members', async (t) => {
    const server = await startServer(t)
    const before = server.clock.now()
    const whisper = await aWhisper(server)
    assert.deepEqual(Object.keys(whisper), ['product', 'publicId', 'readToken', 'expiresAt'])
    assert.match(whisper.publicId, /^whisper_[0-9A-Za-z]{22}$/)
    assert.match(whisper.readToken, /^whisper_read_[0-9A-Za-z]{49}$/)
    const life = Date.parse(whisper.expiresAt) - before
    assert.ok(life >= DAY && life < DAY + MINUTE)
  })

  test('refuses what is not right before there is an order', async (t) => {
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
      assert.deepEqual(short(await purchase(server, ask)), refusal(error), what)
    }
    assert.deepEqual(stored(server), { orders: 0, invoices: 0, ciphertexts: 0, unpaid: [] })
  })

  test('a body far above its limit is refused while its sender still sends', async (t) => {
    const server = await startServer(t)
    const { port } = new URL(server.url)
    const socket = connect(Number(port), '127.0.0.1')
    let answer = ''
    socket.setEncoding('latin1').on('data', (text: string) => {
      answer += text
    })
    // The server hangs up on what it has not read; what counts is what it said before.
    socket.on('error', () => undefined)
    socket.write(
      `POST /api/payments/whisper HTTP/1.1\r\nHost: mayfly\r\nIdempotency-Key: ${randomUUID()}\r\nX-Whisper-Plan: spark\r\nContent-Type: application/octet-stream\r\nContent-Length: 99999999999\r\n\r\n`,
    )
    // Of what it announced, the server reads no more than this; the rest waits in the network.
    socket.write(Buffer.alloc(9 * 1024 * 1024 + 64 * 1024))
    await once(socket, 'close')
    assert.match(answer, /^HTTP\/1\.1 400 /)
    assert.match(answer, /connection: close/i)
    assert.match(answer, /\{"error":"ciphertext too large"\}$/)
  })

  test('takes every bound itself', async (t) => {
    const server = await startServer(t)
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
    for (const ask of cases) assert.equal((await purchase(server, ask)).status, 402)
    const [whisper, body] = [await aWhisper(server, cases[3]), cases[3]?.body]
    assert.deepEqual((await read(server, whisper)).body, body)
  })

  test('the same request is the same quote; another body, plan, limit or time is refused', async (t) => {
    const server = await startServer(t)
    const revealAt = iso(server, MINUTE)
    const ask = { key: randomUUID(), plan: 'standard', readLimit: 5, revealAt }
    const quote = await aQuote(server, ask)
    assert.deepEqual(await aQuote(server, ask), quote)
    // The same moment, spelled otherwise.
    const spelled = revealAt.replace('Z', '-00:00')
    assert.deepEqual(await aQuote(server, { ...ask, revealAt: spelled }), quote)
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
    for (const other of others) assert.deepEqual(short(await purchase(server, other)), REUSED)
    assert.equal(stored(server).orders, 1)
    assert.equal(stored(server).ciphertexts, 1)
  })

  test('no read limit is the plan’s own', async (t) => {
    const server = await startServer(t)
    const key = randomUUID()
    const quote = await aQuote(server, { key })
    assert.deepEqual(await aQuote(server, { key, readLimit: 3 }), quote)
  })

  test('a repeat stays valid when its reveal time has come', async (t) => {
    const server = await startServer(t)
    const ask = { key: randomUUID(), revealAt: iso(server, MINUTE) }
    const quote = await aQuote(server, ask)
    server.clock.advance(2 * MINUTE)
    assert.deepEqual(await aQuote(server, ask), quote)
    await server.pay(quote.bolt11)
    const whisper = await delivered(server, quote, ask.key)
    assert.equal((await purchase(server, ask)).status, 200)
    assert.equal((await read(server, whisper)).status, 200)
    assert.deepEqual(
      short(await purchase(server, { ...ask, key: randomUUID() })),
      refusal('invalid reveal time'),
    )
  })

  test('a bought one is replayed to its buyer until the first read', async (t) => {
    const server = await startServer(t)
    const key = randomUUID()
    const whisper = await aWhisper(server, { key })
    const answer = await purchase(server, { key })
    assert.equal(answer.status, 200)
    assert.deepEqual(JSON.parse(answer.text), { settled: true, resource: whisper })
    await read(server, whisper)
    assert.deepEqual(short(await purchase(server, { key })), {
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
    assert.deepEqual(stored(server), { orders: 0, invoices: 0, ciphertexts: 0, unpaid: [] })
    assert.ok(!server.logged.some((line) => line.includes('http.failed')))
  })

  test('the quote of a scheduled one may be paid by a poll or by a repeat of the purchase', async (t) => {
    const server = await startServer(t)
    const key = randomUUID()
    const quote = await aQuote(server, { key })
    await server.pay(quote.bolt11)
    let answer = await purchase(server, { key })
    await until('the repeat delivers', async () => {
      answer = await purchase(server, { key })
      return answer.status === 200
    })
    const { resource } = JSON.parse(answer.text)
    assert.deepEqual((await read(server, resource)).body, A_BODY)
  })

  test('the quote and its bytes outlive a restart', async (t) => {
    const server = await startServer(t)
    const key = randomUUID()
    const body = randomBytes(60_000)
    const quote = await aQuote(server, { key, body })
    await server.restart()
    assert.deepEqual(await aQuote(server, { key, body }), quote)
    await server.pay(quote.bolt11)
    assert.deepEqual((await read(server, await delivered(server, quote, key))).body, body)
  })

  test('a quote that died is expired, and its bytes are gone', async (t) => {
    const server = await startServer(t)
    const key = randomUUID()
    await aQuote(server, { key })
    server.clock.advance(15 * MINUTE + SECOND)
    await until('the quote dies', async () => {
      const answer = await purchase(server, { key })
      return answer.status === 404 && answer.text === '{"error":"order expired"}'
    })
    assert.deepEqual(stored(server), {
      orders: 1,
      invoices: 1,
      ciphertexts: 0,
      unpaid: [
        ['127.0.0', 0],
        ['all', 0],
      ],
    })
  })
})

suite('reading', () => {
  test('answers the exact bytes as a download that nobody sniffs or keeps', async (t) => {
    const server = await startServer(t)
    const body = Buffer.concat([Buffer.from('<script>alert(1)</script>\0\r\n'), randomBytes(9_000)])
    const whisper = await aWhisper(server, { body })
    const answer = await read(server, whisper)
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, body)
    const { headers } = answer
    assert.equal(headers['content-type'], 'application/octet-stream')
    assert.equal(headers['content-length'], String(body.length))
    assert.equal(headers['content-disposition'], 'attachment')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['access-control-allow-origin'], '*')
  })

  test('spends a read each time, and then there is nothing', async (t) => {
    const server = await startServer(t)
    const whisper = await aWhisper(server, { readLimit: 2 })
    for (const status of [200, 200, 404, 404]) {
      assert.equal((await read(server, whisper)).status, status)
    }
    assert.deepEqual(short(await read(server, whisper)), NOT_FOUND)
  })

  test('every wrong way in looks the same and spends nothing', async (t) => {
    const server = await startServer(t)
    const whisper = await aWhisper(server, { readLimit: 1 })
    const other = await aWhisper(server)
    const scheduled = await aWhisper(server, { revealAt: iso(server, MINUTE) })
    const { publicId, readToken } = whisper
    const token = (text: string) => ({ authorization: text })
    const cases: [what: string, answer: Promise<Answer>][] = [
      ['no token', read(server, { publicId, readToken: null })],
      ['a malformed token', read(server, { publicId, readToken: 'x' })],
      ['a token with a typo', read(server, { publicId, readToken: `${readToken.slice(0, -1)}~` })],
      ['a token of another', read(server, { publicId, readToken: other.readToken })],
      [
        'a token of another kind',
        read(server, { publicId, readToken: tokenOf('catch_owner', new Uint8Array(32)) }),
      ],
      ['another scheme', read(server, { publicId, readToken: null }, token(`Basic ${readToken}`))],
      [
        'two tokens',
        read(
          server,
          { publicId, readToken: null },
          {
            authorization: [`Bearer ${readToken}`, `Bearer ${readToken}`],
          },
        ),
      ],
      ['an unknown id', read(server, { publicId: newId('whisper'), readToken })],
      ['an id of another kind', read(server, { publicId: newId('catch'), readToken })],
      ['a malformed id', read(server, { publicId: "whisper_'--", readToken })],
      ['the token in the query', send(`${server.url}/w/${publicId}?token=${readToken}`, {})],
      [
        'a wrong token on a scheduled one',
        read(server, { publicId: scheduled.publicId, readToken }),
      ],
      ['no token on a scheduled one', read(server, { ...scheduled, readToken: null })],
    ]
    for (const [what, answer] of cases) {
      const { headers, ...rest } = await answer
      assert.deepEqual(short({ headers, ...rest }), NOT_FOUND, what)
      assert.equal(headers['www-authenticate'], undefined, what)
    }
    assert.equal((await read(server, whisper)).status, 200)
  })

  test('takes GET alone; other methods and a preflight spend nothing', async (t) => {
    const server = await startServer(t)
    const whisper = await aWhisper(server, { readLimit: 1 })
    for (const method of ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const answer = await read(server, whisper, {}, method)
      assert.deepEqual([answer.status, answer.headers.allow], [405, 'GET'], method)
    }
    const preflight = await read(
      server,
      { ...whisper, readToken: null },
      {
        origin: 'https://reader.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'authorization',
      },
      'OPTIONS',
    )
    assert.equal(preflight.status, 204)
    assert.equal(preflight.headers['access-control-allow-headers'], 'authorization')
    assert.equal((await read(server, whisper)).status, 200)
  })

  test('sends the whole also to who asks for a range or says what it has', async (t) => {
    const server = await startServer(t)
    const whisper = await aWhisper(server)
    const answer = await read(server, whisper, { range: 'bytes=0-3', 'if-none-match': '*' })
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, A_BODY)
  })

  test('before its time says when, rounded up, and spends nothing', async (t) => {
    const server = await startServer(t)
    const revealAt = iso(server, 10 * MINUTE)
    const key = randomUUID()
    const whisper = await aWhisper(server, { key, readLimit: 1, revealAt })
    const before = server.clock.now()
    const answer = await read(server, whisper)
    const after = server.clock.now()
    assert.equal(answer.status, 425)
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
    assert.deepEqual(JSON.parse(answer.text), { error: 'not revealed', revealAt })
    const seconds = Number(answer.headers['retry-after'])
    const due = Date.parse(revealAt)
    assert.ok(Number.isInteger(seconds))
    assert.ok(seconds * SECOND >= due - after && (seconds - 1) * SECOND < due - before)
    // It was no use of the token yet: the buyer may still ask again.
    assert.equal((await purchase(server, { key, readLimit: 1, revealAt })).status, 200)
    await assert.rejects(
      server.mayfly.fetchWhisper(aCode(whisper)),
      mayflyError('not revealed', 425),
    )
    server.clock.advance(seconds * SECOND)
    assert.deepEqual((await read(server, whisper)).body, A_BODY)
    assert.deepEqual(short(await read(server, whisper)), NOT_FOUND)
  })

  test('an expired one is gone at once, revealed or not', async (t) => {
    const server = await startServer(t)
    const whisper = await aWhisper(server)
    const scheduled = await aWhisper(server, { revealAt: iso(server, DAY - MINUTE) })
    assert.equal((await read(server, whisper)).status, 200)
    server.clock.advance(Date.parse(scheduled.expiresAt) - server.clock.now())
    assert.deepEqual(short(await read(server, whisper)), NOT_FOUND)
    assert.deepEqual(short(await read(server, scheduled)), NOT_FOUND)
  })

  test('is limited for each one, and a refused read spends nothing', async (t) => {
    const server = await startServer(t, {
      MAYFLY_RATE_LIMITS: 'on',
      MAYFLY_TRUSTED_PROXIES: '127.0.0.1',
    })
    const whisper = await aWhisper(server, { plan: 'long', readLimit: 32 })
    const stranger = { ...whisper, readToken: tokenOf('whisper_read', new Uint8Array(32)) }
    const guesses = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        read(server, stranger, { 'x-forwarded-for': `192.0.2.${i}` }),
      ),
    )
    assert.ok(guesses.every(({ status }) => status === 404))
    const answers = await Promise.all(Array.from({ length: 40 }, () => read(server, whisper)))
    const refused = answers.filter(({ status }) => status !== 200)
    assert.equal(answers.length - refused.length, 30)
    for (const answer of refused) assertNoRoom(answer)
    assert.equal(readsLeft(server), 2)
    const other = await aWhisper(server)
    assert.equal((await read(server, other)).status, 200)
  })

  test('lets a client try wrong tokens only so often, and a right one always', async (t) => {
    const server = await startServer(t, { MAYFLY_RATE_LIMITS: 'on' })
    const whisper = await aWhisper(server)
    const wrong = { ...whisper, readToken: tokenOf('whisper_read', new Uint8Array(32)) }
    const statuses: number[] = []
    for (let i = 0; i < 22; i++) statuses.push((await read(server, wrong)).status)
    assert.deepEqual(statuses.slice(0, 20), Array(20).fill(404))
    assert.deepEqual(statuses.slice(20), [429, 429])
    assert.equal((await read(server, whisper)).status, 200)
  })

  test('no token, key or content reaches the log', async (t) => {
    const server = await startServer(t, { MAYFLY_LOG_LEVEL: 'debug' })
    const key = randomUUID()
    const marker = 'MARKERMARKERMARKERMARKERMARKERMARKER'
    const whisper = await aWhisper(server, { key, body: Buffer.from(marker) })
    await read(server, whisper)
    const log = server.logged.join('')
    assert.match(log, /\/w\/:publicId/)
    for (const secret of [key, marker, whisper.readToken, whisper.publicId]) {
      assert.ok(!log.includes(secret))
    }
  })
})

suite('the flows', () => {
  test('the flow may change half-way: quoted natively, paid by an L402 wallet', async (t) => {
    const server = await startServer(t)
    const ask = { key: randomUUID(), body: randomBytes(500) }
    const quote = await aQuote(server, ask)
    const challenge = await purchase(server, inFlow(ask, 'l402'))
    assert.equal(challenge.status, 402)
    assert.equal(JSON.parse(challenge.text).paymentHash, quote.paymentHash)
    const authorization = l402(challenge, await server.pay(quote.bolt11))
    const answer = await purchase(server, { ...ask, headers: { authorization } })
    assert.equal(answer.status, 200)
    const { resource } = JSON.parse(answer.text)
    assert.deepEqual((await read(server, resource)).body, ask.body)
    assert.equal(stored(server).invoices, 1)
  })

  test('the flow may change half-way: challenged as a Payment, settled by a poll', async (t) => {
    const server = await startServer(t)
    const ask = { key: randomUUID(), body: randomBytes(500) }
    const challenge = await purchase(server, inFlow(ask, 'payment'))
    assert.match(String(challenge.headers['www-authenticate']), /^Payment /)
    const quote = await aQuote(server, ask)
    await server.pay(quote.bolt11)
    const whisper = await delivered(server, quote, ask.key)
    assert.deepEqual((await read(server, whisper)).body, ask.body)
  })

  test('a Payment credential buys it at once, with a receipt', async (t) => {
    const server = await startServer(t)
    const ask = { key: randomUUID(), body: randomBytes(500) }
    const challenge = await purchase(server, inFlow(ask, 'payment'))
    const { bolt11 } = await aQuote(server, ask)
    const authorization = payment(challenge, await server.pay(bolt11))
    const answer = await purchase(server, { ...ask, headers: { authorization } })
    assert.equal(answer.status, 200)
    assert.ok(answer.headers['payment-receipt'])
    const { resource } = JSON.parse(answer.text)
    assert.deepEqual((await read(server, resource)).body, ask.body)
  })

  test('a credential pays for its own body alone', async (t) => {
    const server = await startServer(t)
    const ask = { key: randomUUID(), body: randomBytes(500) }
    const challenge = await purchase(server, inFlow(ask, 'l402'))
    const { bolt11 } = await aQuote(server, ask)
    const headers = { authorization: l402(challenge, await server.pay(bolt11)) }
    const otherBody = { ...ask, body: randomBytes(500), headers }
    assert.deepEqual(short(await purchase(server, otherBody)), REUSED)
    const other = await purchase(server, { ...otherBody, key: randomUUID() })
    assert.ok(other.status === 401 || other.status === 402, String(other.status))
    assert.notEqual(JSON.parse(other.text).paymentHash, JSON.parse(challenge.text).paymentHash)
    assert.equal((await purchase(server, { ...ask, headers })).status, 200)
  })

  test('what finds no room is refused in every flow, without a challenge', async (t) => {
    const server = await startServer(t, { MAYFLY_UNPAID_BYTES: '40,40' })
    for (const protocol of ['payment', 'l402']) {
      const answer = await purchase(server, inFlow({}, protocol))
      assertNoRoom(answer, protocol)
      assert.equal(answer.headers['www-authenticate'], undefined)
    }
  })
})

suite('bytes that wait for their payment', () => {
  const LIMITS = { MAYFLY_UNPAID_BYTES: '1000,1500', MAYFLY_TRUSTED_PROXIES: '127.0.0.1' }
  const of = (length: number, from: string): Purchase => ({ body: randomBytes(length), from })

  test('are limited per network and in all, before there is an invoice', async (t) => {
    const server = await startServer(t, LIMITS)
    await aQuote(server, of(600, '203.0.113.7'))
    await aQuote(server, of(400, '203.0.113.200'))
    assertNoRoom(await purchase(server, of(30, '203.0.113.9')))
    await aQuote(server, of(470, '2001:db8:1::1'))
    assertNoRoom(await purchase(server, of(31, '198.51.100.1')), 'in all there is room for 30')
    await aQuote(server, of(30, '2001:db8:1:ffff::2'))
    assertNoRoom(await purchase(server, of(30, '192.0.2.1')))
    assert.deepEqual(stored(server), {
      orders: 4,
      invoices: 4,
      ciphertexts: 4,
      unpaid: [
        ['2001:db8:1', 500],
        ['203.0.113', 1000],
        ['all', 1500],
      ],
    })
  })

  test('are never more than the limit, however many come at once', async (t) => {
    const server = await startServer(t, LIMITS)
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => purchase(server, of(100, '203.0.113.7'))),
    )
    const statuses = answers.map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 402).length, 10)
    assert.equal(statuses.filter((status) => status === 429).length, 30)
  })

  test('make room once they are paid, and a repeat needs none', async (t) => {
    const server = await startServer(t, LIMITS)
    const ask = { ...of(1000, '203.0.113.7'), key: randomUUID() }
    const quote = await aQuote(server, ask)
    assertNoRoom(await purchase(server, of(30, '203.0.113.7')))
    assert.deepEqual(await aQuote(server, ask), quote)
    await server.pay(quote.bolt11)
    const whisper = await delivered(server, quote, ask.key)
    await aQuote(server, of(1000, '203.0.113.7'))
    assert.deepEqual((await read(server, whisper)).body, ask.body)
  })

  test('make room once their quote is dead', async (t) => {
    const server = await startServer(t, LIMITS)
    const ask = { ...of(1000, '203.0.113.7'), key: randomUUID() }
    await aQuote(server, ask)
    server.clock.advance(15 * MINUTE + SECOND)
    await until('the quote dies', async () => (await purchase(server, ask)).status === 404)
    await aQuote(server, of(1000, '203.0.113.7'))
  })

  test('a key that found no room is free for a smaller request', async (t) => {
    const server = await startServer(t, LIMITS)
    const key = randomUUID()
    assertNoRoom(await purchase(server, { ...of(1001, '203.0.113.7'), key }))
    assert.equal((await purchase(server, { ...of(999, '203.0.113.7'), key })).status, 402)
  })

  for (const value of ['', '1000', '1,2,3', '0,5', '-1,5', '1.5,2', 'a,b', '1e3,2e3', '5,']) {
    test(`"${value}" is no setting`, () => {
      assert.throws(
        () => readConfig({ MAYFLY_UNPAID_BYTES: value }),
        /^ConfigError: MAYFLY_UNPAID_BYTES must be two numbers of bytes, comma-separated: per client network, and in all\.$/,
      )
    })
  }

  test('the default is 64 MiB per network and 1 GiB in all', () => {
    assert.deepEqual(readConfig({}).unpaidBytes, { perNetwork: 64 * 2 ** 20, inAll: 2 ** 30 })
  })
})

const inFlow = (ask: Purchase, protocol: string): Purchase => ({
  ...ask,
  headers: { 'x-payment-protocol': protocol },
})

const challenges = ({ headers }: Answer) =>
  parseChallenges([String(headers['www-authenticate'])]) ?? []

function l402(answer: Answer, preimage: string): string {
  const [challenge] = l402Challenges(challenges(answer))
  return serialiseL402Credential({ macaroon: challenge?.macaroon ?? '', preimage })
}

function payment(answer: Answer, preimage: string): string {
  const [challenge] = paymentChallenges(challenges(answer))
  return serialisePaymentCredential({
    challenge: challenge ?? assert.fail(),
    payload: { preimage },
  })
}

const chunked = { 'content-length': undefined, 'transfer-encoding': 'chunked' }

function assertNoRoom(answer: Answer, message?: string): void {
  assert.deepEqual(short(answer), { status: 429, text: '{"error":"rate limited"}' }, message)
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
}

function mayflyError(phrase: string, status: number) {
  return (error: unknown) =>
    error instanceof MayflyError && error.phrase === phrase && error.status === status
}

function aCode({ publicId, readToken }: { publicId: string; readToken: string }): string {
  return `mayfly-whisper:1:${publicId}:${readToken}:${'A'.repeat(43)}`
}

async function aCatalog(t: Parameters<typeof temporaryFolder>[0], plans: object): Promise<string> {
  const file = join(await temporaryFolder(t), 'plans.json')
  await writeFile(file, JSON.stringify(plans))
  return file
}

function readsLeft(server: TestServer): unknown {
  const database = new DatabaseSync(server.file, { readOnly: true })
  try {
    return database.prepare('select reads_left from whisper').get()?.reads_left
  } finally {
    database.close()
  }
}

/** What is in the store. */
function stored(server: TestServer) {
  const database = new DatabaseSync(server.file, { readOnly: true })
  try {
    const count = (table: string): number =>
      Number(database.prepare(`select count(*) as n from ${table}`).get()?.n)
    return {
      orders: count('purchase_order'),
      invoices: count('simulator_invoice'),
      ciphertexts: count('whisper_ciphertext'),
      unpaid: database
        .prepare('select scope, byte_count from whisper_unpaid order by scope')
        .all()
        .map(({ scope, byte_count }) => [scope, byte_count]),
    }
  } finally {
    database.close()
  }
}
