/** What phoenixd is asked, what its answers mean, and how its payments are followed. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { UnknownInvoice } from '../../../src/lightning/lightning.ts'
import { NodeError, type NodeFailure } from '../../../src/lightning/node/error.ts'
import { createPhoenixd, type PhoenixdOptions } from '../../../src/lightning/phoenixd/phoenixd.ts'
import { manualClock } from '../../support/shop.ts'
import { CERTIFICATE } from '../../support/stand-ins/certificate.ts'
import { sendJson, sendText } from '../../support/stand-ins/http-server.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'
import { startPhoenixd } from '../../support/stand-ins/phoenixd.ts'
import { until } from '../../support/until.ts'

const ASK = { amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 901 }
const HASH = 'ab'.repeat(32)
const GRACE_MS = 10 * 60_000

async function aWorld(
  t: TestContext,
  options: Partial<PhoenixdOptions> = {},
  { tls = false }: { tls?: boolean } = {},
) {
  const clock = manualClock(Date.now())
  const own = createLedger(clock)
  const standIn = await startPhoenixd({ clock, own, tls })
  const warnings: string[] = []
  const lightning = createPhoenixd({
    baseUrl: standIn.baseUrl,
    password: standIn.limitedPassword,
    certificate: undefined,
    clock,
    onWarning: (message) => warnings.push(message),
    ...options,
  })
  t.after(async () => {
    await lightning.close()
    await standIn.close()
  })
  /** Replaces the answer to what begins with `start`. */
  const answer = (start: string, body: unknown, status = 200): void =>
    standIn.spoil(({ line }, response) => {
      if (!line.startsWith(start)) return false
      if (typeof body === 'string') sendText(response, body, status)
      else sendJson(response, body, status)
      return true
    })
  const watch = (onSettled: (hash: string) => void = () => {}) => {
    const told: string[] = []
    const stop = new AbortController()
    const ended = lightning.watch((hash) => {
      onSettled(hash)
      told.push(hash)
    }, stop.signal)
    const end = async () => {
      stop.abort()
      await ended
    }
    t.after(end)
    return {
      told,
      end,
      isOpen: () => until('a websocket', () => standIn.sockets() === 1),
      isTold: (hash: string) => until('word of it', () => told.includes(hash)),
    }
  }
  return { clock, own, standIn, lightning, warnings, answer, watch }
}

test('phoenixd is asked for an invoice of exactly what was asked, in whole satoshis', async (t) => {
  const { lightning, standIn } = await aWorld(t)
  await lightning.createInvoice(ASK)
  const [info, invoice, ...more] = standIn.requests
  assert.deepEqual([info?.line, invoice?.line, more], ['GET /getinfo', 'POST /createinvoice', []])
  assert.deepEqual(Object.fromEntries(new URLSearchParams(invoice?.body)), {
    description: 'Mayfly',
    amountSat: '21',
    expirySeconds: '901',
  })
  await assert.rejects(lightning.createInvoice({ ...ASK, amountMsat: 21_001 }), {
    name: 'RangeError',
    message: 'amountMsat must be a multiple of 1000',
  })
})

test('phoenixd names its network in either case', async (t) => {
  const { lightning, answer } = await aWorld(t)
  for (const [chain, network] of [
    ['mainnet', 'mainnet'],
    ['Mainnet', 'mainnet'],
    ['regtest', 'regtest'],
  ] as const) {
    answer('GET /getinfo', { chain, blockHeight: 1 })
    assert.equal((await lightning.info()).network, network)
  }
  answer('GET /getinfo', { blockHeight: 1 })
  await assert.rejects(lightning.info(), { message: 'phoenixd: chain is missing' })
})

test('phoenixd is in sync once it knows the height of the chain', async (t) => {
  const { lightning, answer } = await aWorld(t)
  for (const [blockHeight, synced] of [
    [1, true],
    [0, false],
    [null, false],
    [undefined, false],
  ] as const) {
    answer('GET /getinfo', { chain: 'regtest', blockHeight })
    assert.deepEqual(await lightning.info(), { network: 'regtest', synced, nodeId: null })
  }
  answer('GET /getinfo', { chain: 'regtest', blockHeight: '433' })
  await assert.rejects(lightning.info(), { message: 'phoenixd: blockHeight is not a count' })
})

test('a refusal of phoenixd is a line of text, and anything else is not of phoenixd', async (t) => {
  const { lightning, answer } = await aWorld(t)
  type Told = { reason: NodeFailure; message: string; answer: unknown }
  const refused = (status: number, message: string): Told => ({
    reason: 'refused',
    message: `phoenixd: looking up an invoice was refused: ${message}`,
    answer: { code: status, message },
  })
  const unreadable = (status: number): Told => ({
    reason: 'malformed',
    message: `phoenixd: looking up an invoice got HTTP ${status} that is not of phoenixd`,
    answer: undefined,
  })
  const table: [status: number, text: string, told: Told][] = [
    [400, 'Parameter paymentHash is invalid', refused(400, 'Parameter paymentHash is invalid')],
    [401, 'Invalid authentication', refused(401, 'Invalid authentication')],
    [400, `no ${'ab'.repeat(32)}`, refused(400, 'no …')],
    [499, 'odd', refused(499, 'odd')],
    [500, 'odd', unreadable(500)],
    [502, 'Bad gateway', unreadable(502)],
    [403, '<html>', unreadable(403)],
    [404, '\n  <html>', unreadable(404)],
    [202, '<p>', unreadable(202)],
  ]
  for (const [status, text, told] of table) {
    answer('GET /payments', text, status)
    await assert.rejects(lightning.lookupInvoice(HASH), (error) => {
      assert.ok(error instanceof NodeError)
      const { reason, message } = error
      assert.deepEqual({ reason, message, answer: error.answer }, told)
      return true
    })
  }
  answer('GET /payments', 'Not found', 404)
  await assert.rejects(lightning.lookupInvoice(HASH), UnknownInvoice)
})

test('phoenixd is not believed about another invoice, or one whose state is unclear', async (t) => {
  const { lightning, answer } = await aWorld(t)
  const mine = { paymentHash: HASH, isPaid: false, expiresAt: 1 }
  for (const [body, message] of [
    [
      { ...mine, paymentHash: 'cd'.repeat(32), isPaid: true },
      'the node answered for another invoice',
    ],
    [{ ...mine, paymentHash: undefined }, 'paymentHash is not a hash'],
    // Long after its expiry: it is not dead either.
    [{ ...mine, isPaid: undefined }, 'isPaid is missing'],
    [{ ...mine, expiresAt: 'soon' }, 'expiresAt is not a count'],
  ] as const) {
    answer('GET /payments', body)
    await assert.rejects(lightning.lookupInvoice(HASH), {
      reason: 'malformed',
      message: `phoenixd: ${message}`,
    })
  }
})

test('an unpaid invoice of phoenixd dies by the expiry that phoenixd says, or else by that of the invoice', async (t) => {
  const { lightning, answer, clock, own } = await aWorld(t)
  const { bolt11, paymentHash, expiresAt } = own.make(ASK)
  const unpaid = { paymentHash, isPaid: false }
  clock.advance(expiresAt + GRACE_MS - clock.now())
  const cases = [{ expiresAt }, { invoice: bolt11 }, { expiresAt: null, invoice: bolt11 }]
  for (const fields of cases) {
    answer('GET /payments', { ...unpaid, ...fields })
    assert.deepEqual(await lightning.lookupInvoice(paymentHash), { state: 'open' })
  }
  clock.advance(1)
  for (const fields of cases) {
    answer('GET /payments', { ...unpaid, ...fields })
    assert.deepEqual(await lightning.lookupInvoice(paymentHash), { state: 'dead', isFinal: false })
  }
  // Nobody knows when.
  answer('GET /payments', unpaid)
  assert.deepEqual(await lightning.lookupInvoice(paymentHash), { state: 'open' })
})

test('checking the access of phoenixd says what is wrong in one sentence', async (t) => {
  const { lightning, answer, standIn } = await aWorld(t)
  const { baseUrl } = standIn
  assert.equal(await lightning.checkAccess(), null)
  for (const [status, text, sentence] of [
    [
      401,
      'Invalid authentication',
      'phoenixd does not accept the password of MAYFLY_LIGHTNING_URL; it is the http-password-limited-access in its phoenix.conf, percent-encoded',
    ],
    [400, 'no', 'phoenixd: asking for the node was refused: no'],
    [
      502,
      'no',
      `phoenixd: asking for the node got HTTP 502 that is not of phoenixd: ${baseUrl} is not the HTTP port of phoenixd`,
    ],
  ] as const) {
    answer('GET /getinfo', text, status)
    assert.deepEqual(await lightning.checkAccess(), { sentence, isAway: false })
  }
  const away = await aWorld(t)
  await away.standIn.close()
  assert.deepEqual(await away.lightning.checkAccess(), {
    sentence: `phoenixd: asking for the node failed (connection refused): nothing at ${away.standIn.baseUrl} speaks HTTP as phoenixd does`,
    isAway: true,
  })
})

test("phoenixd's watch tells of each payment that it hears of, and leaves other events out", async (t) => {
  const { standIn, warnings, own, watch } = await aWorld(t)
  const { told, isOpen, isTold } = watch()
  await isOpen()
  const other = [
    { type: 'payment_sent', paymentHash: HASH },
    { type: 'channel_opened' },
    { type: '', paymentHash: HASH },
  ]
  for (const event of other) standIn.say(JSON.stringify(event))
  const { bolt11, paymentHash } = own.make(ASK)
  own.pay(bolt11)
  await isTold(paymentHash)
  assert.deepEqual([told, warnings], [[paymentHash], []])
})

test("phoenixd's watch warns of each event that is unreadable, and stays", async (t) => {
  const { standIn, warnings, own, watch } = await aWorld(t)
  const { told, isOpen, isTold } = watch()
  await isOpen()
  const odd = [
    '{',
    '[]',
    'null',
    '{}',
    '{"type":1}',
    '{"type":"payment_received"}',
    `{"type":"payment_received","paymentHash":"${HASH}ab"}`,
    `{"type":"payment_received","paymentHash":"x${HASH}"}`,
    `{"type":"payment_received","paymentHash":["${HASH}"]}`,
    Buffer.from(`{"type":"payment_received","paymentHash":"${HASH}"}`),
  ]
  for (const event of odd) standIn.say(event)
  const { bolt11, paymentHash } = own.make(ASK)
  own.pay(bolt11)
  await isTold(paymentHash)
  assert.deepEqual(told, [paymentHash])
  assert.deepEqual(
    warnings,
    odd.map(() => 'phoenixd: an event of the websocket is unreadable'),
  )
})

test("phoenixd's watch connects again when its websocket is cut, and warns once an outage", async (t) => {
  const timeouts = { retryFirstMs: 1, retryMaxMs: 5 }
  const { standIn, warnings, own, watch } = await aWorld(t, { timeouts })
  const { isOpen, isTold } = watch()
  await isOpen()
  const outage = 'phoenixd: the websocket was closed; connecting again'
  // Also where no event came in between.
  for (const warned of [[outage], [outage, outage]]) {
    standIn.cutSockets()
    await until('a warning', () => warnings.length === warned.length)
    await isOpen()
    assert.deepEqual(warnings, warned)
  }
  const { bolt11, paymentHash } = own.make(ASK)
  own.pay(bolt11)
  await isTold(paymentHash)
})

test("phoenixd's watch warns once of a node that does not let it in, however often it tries", async (t) => {
  const timeouts = { retryFirstMs: 1, retryMaxMs: 2 }
  const { standIn, warnings, watch } = await aWorld(t, { timeouts, password: 'wrong' })
  let attempts = 0
  standIn.server.prependListener('upgrade', () => {
    attempts += 1
  })
  const { told } = watch()
  await until('some attempts', () => attempts >= 5)
  assert.deepEqual(warnings, ['phoenixd: the websocket was closed; connecting again'])
  assert.deepEqual(told, [])
})

test("phoenixd's watch hangs up on an event that is longer than any of phoenixd's", async (t) => {
  const timeouts = { retryFirstMs: 1, retryMaxMs: 5 }
  const { standIn, warnings, watch } = await aWorld(t, { timeouts })
  const { isOpen, told } = watch()
  await isOpen()
  const event = (length: number) =>
    `{"type":"payment_received","paymentHash":"${HASH}"}`.padEnd(length)
  standIn.say(event(64 * 1024))
  await until('word of it', () => told.length === 1)
  standIn.say(event(64 * 1024 + 1))
  await until('a warning', () => warnings.length === 1)
  assert.deepEqual(warnings, ['phoenixd: the websocket was closed; connecting again'])
  assert.equal(told.length, 1)
})

test('phoenixd behind a proxy is followed if its certificate is the one that was named, and else not', async (t) => {
  const timeouts = { retryFirstMs: 1, retryMaxMs: 5 }
  const known = await aWorld(t, { timeouts, certificate: CERTIFICATE }, { tls: true })
  const { isOpen, isTold } = known.watch()
  await isOpen()
  const { bolt11, paymentHash } = await known.lightning.createInvoice(ASK)
  known.own.pay(bolt11)
  await isTold(paymentHash)
  assert.deepEqual(known.warnings, [])

  const unknown = await aWorld(t, { timeouts }, { tls: true })
  unknown.watch()
  await until('a warning', () => unknown.warnings.length > 0)
  assert.equal(unknown.standIn.sockets(), 0)
  assert.match(
    (await unknown.lightning.checkAccess())?.sentence ?? '',
    /does not vouch for; use that of the proxy before phoenixd$/,
  )
})

test("phoenixd's watch leaves no websocket behind when it ends", async (t) => {
  const { standIn, warnings, watch } = await aWorld(t)
  const { isOpen, end } = watch()
  await isOpen()
  await end()
  await until('no websocket', () => standIn.sockets() === 0)
  assert.deepEqual(warnings, [])
})
