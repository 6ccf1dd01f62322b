/** What clnrest is asked, what its answers mean, and how the settlements of Core Lightning are followed. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { type ClnOptions, createCln } from '../../../src/lightning/cln/cln.ts'
import { NodeError, type NodeFailure } from '../../../src/lightning/node/error.ts'
import { testClock } from '../../support/server.ts'
import { CERTIFICATE } from '../../support/stand-ins/certificate.ts'
import { startCln } from '../../support/stand-ins/cln.ts'
import { sendJson, sendText } from '../../support/stand-ins/http-server.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'
import { until } from '../../support/until.ts'

const ASK = { amountMsat: 21_001, memo: 'Mayfly', expirySeconds: 901 }
const HASH = 'ab'.repeat(32)
const ADVICE =
  'make one with: lightning-cli createrune restrictions=' +
  `'[["method=invoice","method=listinvoices","method=waitanyinvoice","method=getinfo"]]'`

type Changes = {
  options?: Partial<ClnOptions>
  node?: Omit<Parameters<typeof startCln>[0], 'own' | 'clock'>
}

async function aWorld(t: TestContext, { options, node }: Changes = {}) {
  const clock = testClock()
  const own = createLedger(clock)
  const standIn = await startCln({ clock, own, ...node })
  const lightning = createCln({
    baseUrl: standIn.baseUrl,
    rune: standIn.rune(),
    certificate: CERTIFICATE,
    private: false,
    cursor: { read: async () => 0, write: async () => undefined },
    clock,
    ...options,
  })
  t.after(async () => {
    await lightning.close()
    await standIn.close()
  })
  const asked = (method: string) =>
    standIn.requests
      .filter(({ line }) => line === `POST /v1/${method}`)
      .map(({ body }) => JSON.parse(body) as Record<string, unknown>)
  /** Replaces the answers to a method, by those of an attempt from 0. */
  const answer = (
    method: string,
    by: (response: ServerResponse, attempt: number) => unknown,
  ): void => {
    let attempt = 0
    standIn.spoil(({ line }, response) => {
      if (line !== `POST /v1/${method}`) return false
      by(response, attempt++)
      return true
    })
  }
  return { clock, own, standIn, lightning, asked, answer }
}

test('Core Lightning is asked for an invoice of exactly what was asked, each under a label of its own', async (t) => {
  const { lightning, asked } = await aWorld(t)
  await lightning.createInvoice(ASK)
  await lightning.createInvoice(ASK)
  const [first = {}, second = {}, ...more] = asked('invoice')
  assert.deepEqual(more, [])
  assert.deepEqual(
    { ...first, label: '' },
    { amount_msat: 21_001, label: '', description: 'Mayfly', expiry: 901 },
  )
  assert.match(String(first.label), /^mayfly-[0-9a-f-]{36}$/)
  assert.notEqual(second.label, first.label)
  // The network is asked for once.
  assert.equal(asked('getinfo').length, 1)
})

test('Core Lightning is asked for hints to private channels where the URL says so', async (t) => {
  const { lightning, asked } = await aWorld(t, { options: { private: true } })
  await lightning.createInvoice(ASK)
  assert.equal(asked('invoice')[0]?.exposeprivatechannels, true)
})

test('Core Lightning names mainnet bitcoin, and the other networks as everybody does', async (t) => {
  for (const [network, expected] of [
    ['bitcoin', 'mainnet'],
    ['signet', 'signet'],
    ['regtest', 'regtest'],
  ] as const) {
    const { lightning } = await aWorld(t, { node: { network } })
    assert.equal((await lightning.info()).network, expected)
  }
})

test('Core Lightning is not in sync while it warns that itself or its bitcoind is behind', async (t) => {
  for (const warning of ['warning_bitcoind_sync', 'warning_lightningd_sync']) {
    const warnings = { [warning]: 'Still loading latest blocks from bitcoind.' }
    const { lightning } = await aWorld(t, { node: { warnings } })
    assert.equal((await lightning.info()).synced, false, warning)
  }
  const { lightning } = await aWorld(t)
  assert.equal((await lightning.info()).synced, true)
})

test('Core Lightning calls an invoice unpaid, paid or expired, and what expired is dead for good', async (t) => {
  const { lightning, answer } = await aWorld(t)
  for (const [status, expected] of [
    ['unpaid', { state: 'open' }],
    ['paid', { state: 'settled' }],
    ['expired', { state: 'dead', isFinal: true }],
  ] as const) {
    // As clnrest answers, and as it once did.
    for (const http of [201, 200]) {
      answer('listinvoices', (response) =>
        sendJson(response, { invoices: [{ payment_hash: HASH, status }] }, http),
      )
      assert.deepEqual(await lightning.lookupInvoice(HASH), expected)
    }
  }
})

test('Core Lightning is not believed where its list of invoices is none, or is not about the one that was asked for', async (t) => {
  const { lightning, answer } = await aWorld(t)
  const mine = { payment_hash: HASH, status: 'paid' }
  for (const [invoices, message] of [
    [undefined, 'invoices is missing'],
    [{}, 'invoices is missing'],
    [[null], 'an answer is not an object'],
    [[mine, mine], 'the node answered for another invoice'],
    [[{ ...mine, payment_hash: 'cd'.repeat(32) }], 'the node answered for another invoice'],
    [[{ ...mine, status: 'held' }], 'an invoice is in an unknown state'],
    [[{ ...mine, status: undefined }], 'status is missing'],
  ] as const) {
    answer('listinvoices', (response) => sendJson(response, { invoices }, 201))
    await assert.rejects(lightning.lookupInvoice(HASH), {
      name: 'NodeError',
      reason: 'malformed',
      message: `Core Lightning: ${message}`,
    })
  }
})

test('a refusal of Core Lightning is told with its code and its message, in both of the forms that clnrest had', async (t) => {
  const { lightning, answer } = await aWorld(t)
  await lightning.info()
  type Told = { reason: NodeFailure; message: string; answer?: unknown }
  const refused = (message: string, code: number): Told => ({
    reason: 'refused',
    message: `Core Lightning: looking up an invoice was refused: ${message}`,
    answer: { code, message },
  })
  const unreadable = (status: number): Told => ({
    reason: 'malformed',
    message: `Core Lightning: looking up an invoice got HTTP ${status} that is not of Core Lightning`,
    answer: undefined,
  })
  const table: [status: number, body: unknown, told: Told][] = [
    [500, { code: 900, message: 'Duplicate label' }, refused('Duplicate label', 900)],
    [500, { error: { code: -32602, message: 'wrong' } }, refused('wrong', -32602)],
    [500, { code: '900', message: 'odd' }, refused('odd', 500)],
    [404, { message: 'no such method' }, refused('no such method', 404)],
    // Whatever code the rune's refusal has.
    [401, { code: 1501, message: 'Not authorized' }, refused('Not authorized', 401)],
    [403, { error: { code: 7, message: 'Missing rune' } }, refused('Missing rune', 403)],
    [500, { code: 1, message: 'x'.repeat(64) }, refused('…', 1)],
    [500, { code: 900 }, unreadable(500)],
    [500, { code: 900, message: 1 }, unreadable(500)],
    [500, { error: 'Internal error' }, unreadable(500)],
    [500, { error: null, message: 'odd' }, refused('odd', 500)],
    [202, { invoices: [] }, unreadable(202)],
  ]
  for (const [status, body, told] of table) {
    answer('listinvoices', (response) => sendJson(response, body, status))
    await assert.rejects(lightning.lookupInvoice(HASH), (error) => {
      assert.ok(error instanceof NodeError)
      const { reason, message } = error
      assert.deepEqual({ reason, message, answer: error.answer }, told, JSON.stringify(body))
      return true
    })
  }
  answer('listinvoices', (response) => sendText(response, '<h1>Bad gateway</h1>', 502))
  await assert.rejects(lightning.lookupInvoice(HASH), unreadable(502))
})

test('checking the access of Core Lightning tries each method in a way that changes nothing', async (t) => {
  const { lightning, asked, own } = await aWorld(t)
  assert.equal(await lightning.checkAccess(), null)
  assert.deepEqual(asked('listinvoices'), [{ payment_hash: '00'.repeat(32) }])
  assert.deepEqual(asked('invoice'), [
    { amount_msat: 'none', label: 'mayfly', description: 'mayfly' },
  ])
  assert.deepEqual(asked('waitanyinvoice'), [{ timeout: 0 }])
  assert.equal(own.made(), 0)
})

test('checking the access of Core Lightning takes any refusal of the parameters for a permission, and says what the rune lacks', async (t) => {
  const { lightning, standIn, answer } = await aWorld(t)
  const { baseUrl } = standIn
  const lacks = (message: string) => ({
    sentence: `Core Lightning: the rune does not allow invoice (${message}); ${ADVICE}`,
    isAway: false,
  })
  const table: [status: number, body: unknown, problem: unknown][] = [
    [500, { code: -32602, message: 'amount_msat: should be msat' }, null],
    [500, { code: 900, message: 'Duplicate label' }, null],
    [
      401,
      { code: 1502, message: 'Not permitted: method is not equal' },
      lacks('Not permitted: method is not equal'),
    ],
    [403, { code: 7, message: 'Not authorized' }, lacks('Not authorized')],
    // As JSON-RPC has it, whatever the status.
    [500, { code: 1501, message: 'Not authorized: expired' }, lacks('Not authorized: expired')],
    [500, { code: 1502, message: 'Not permitted: too soon' }, lacks('Not permitted: too soon')],
    [
      502,
      'Bad gateway',
      {
        sentence: `Core Lightning: trying the rune got HTTP 502 that is not of Core Lightning: ${baseUrl} is not the port of clnrest`,
        isAway: false,
      },
    ],
  ]
  for (const [status, body, problem] of table) {
    answer('invoice', (response) => sendJson(response, body, status))
    assert.deepEqual(await lightning.checkAccess(), problem, JSON.stringify(body))
  }
  const denied = { code: 1502, message: 'Not permitted' }
  answer('getinfo', (response) => sendJson(response, denied, 401))
  assert.deepEqual(await lightning.checkAccess(), {
    sentence: `Core Lightning: the rune does not allow getinfo (Not permitted); ${ADVICE}`,
    isAway: false,
  })
  answer('getinfo', (response) => sendJson(response, { code: -1, message: 'no' }, 500))
  assert.deepEqual(await lightning.checkAccess(), {
    sentence: 'Core Lightning: asking for the node was refused: no',
    isAway: false,
  })
})

test('checking the access of Core Lightning says what should be at the address, and whose certificate', async (t) => {
  const { lightning, standIn } = await aWorld(t)
  await standIn.close()
  assert.deepEqual(await lightning.checkAccess(), {
    sentence: `Core Lightning: asking for the node failed (connection refused): nothing at ${standIn.baseUrl} speaks HTTPS as clnrest does`,
    isAway: true,
  })
  const unvouched = await aWorld(t, { options: { certificate: undefined } })
  assert.match(
    (await unvouched.lightning.checkAccess())?.sentence ?? '',
    /does not vouch for; use the ca\.pem of clnrest, made for that host$/,
  )
})

/** A cursor in memory, and the watch of a node that answers by these. */
async function aWatch(
  t: TestContext,
  by: (response: ServerResponse, attempt: number) => unknown,
  { from = 7, options = {} }: { from?: number; options?: Partial<ClnOptions> } = {},
) {
  let index = from
  const cursor = {
    read: async () => index,
    write: async (to: number) => {
      index = to
    },
  }
  const warnings: string[] = []
  const world = await aWorld(t, {
    options: {
      cursor,
      timeouts: { retryFirstMs: 1, retryMaxMs: 5 },
      onWarning: (message) => warnings.push(message),
      ...options,
    },
  })
  world.answer('waitanyinvoice', by)
  const told: string[] = []
  const stop = new AbortController()
  const ended = world.lightning.watch((hash) => told.push(hash), stop.signal)
  t.after(async () => {
    stop.abort()
    await ended
  })
  return {
    ...world,
    told,
    warnings,
    cursor: () => index,
    /** From which settlement on the node was asked, in order. */
    from: () => world.asked('waitanyinvoice').map(({ lastpay_index }) => lastpay_index),
    hasAsked: (times: number) =>
      until('the questions', () => world.asked('waitanyinvoice').length >= times),
  }
}

const paid = (index: unknown, hash: unknown = hashOf(index)) => ({
  status: 'paid',
  pay_index: index,
  payment_hash: hash,
})
const hashOf = (index: unknown) => String(index).padStart(64, '0')
const hang = () => {}

test('the watch of Core Lightning asks for what came after the cursor, moves it on, and waits for half a minute each', async (t) => {
  const watch = await aWatch(t, (response, attempt) => {
    if (attempt < 2) sendJson(response, paid(8 + attempt), 201)
  })
  await watch.hasAsked(3)
  assert.deepEqual(watch.told, [hashOf(8), hashOf(9)])
  assert.equal(watch.cursor(), 9)
  assert.deepEqual(watch.asked('waitanyinvoice'), [
    { lastpay_index: 7, timeout: 30 },
    { lastpay_index: 8, timeout: 30 },
    { lastpay_index: 9, timeout: 30 },
  ])
  assert.deepEqual(watch.warnings, [])
})

test('the watch of Core Lightning asks on without a word when the wait is over, and waits for a second at least', async (t) => {
  const watch = await aWatch(
    t,
    (response, attempt) => {
      if (attempt < 3) sendJson(response, { code: 904, message: 'Timed out' }, 500)
    },
    { options: { timeouts: { probeEveryMs: 1 } } },
  )
  await watch.hasAsked(4)
  assert.deepEqual(watch.asked('waitanyinvoice')[3], { lastpay_index: 7, timeout: 1 })
  assert.deepEqual(watch.from(), [7, 7, 7, 7])
  assert.deepEqual([watch.told, watch.warnings], [[], []])
})

for (const [what, body, message] of [
  ['at the cursor', paid(7), 'pay_index did not grow'],
  ['before the cursor', paid(6), 'pay_index did not grow'],
  ['without a place', paid(undefined), 'pay_index did not grow'],
  ['whose place is a text', paid('8'), 'pay_index is not a count'],
  ['without a payment hash', paid(8, 'x'), 'payment_hash is not a hash'],
] as const) {
  test(`the watch of Core Lightning does not believe in a settlement ${what}, and warns once however often it comes`, async (t) => {
    const watch = await aWatch(t, (response) => sendJson(response, body, 201))
    await watch.hasAsked(4)
    assert.deepEqual(new Set(watch.from()), new Set([7]))
    assert.deepEqual([watch.told, watch.cursor()], [[], 7])
    assert.deepEqual(watch.warnings, [`Core Lightning: ${message}; connecting again`])
  })
}

test('the watch of Core Lightning warns once an outage, says what it was doing, and goes on from where it was', async (t) => {
  const refused =
    'Core Lightning: waiting for a payment was refused: shutting down; connecting again'
  const watch = await aWatch(t, (response, attempt) => {
    if (attempt === 0) return sendJson(response, paid(8), 201)
    // An outage ends with a settlement, or with a wait that is over.
    if (attempt === 4) return sendJson(response, paid(9), 201)
    if (attempt === 7) return sendJson(response, { code: 904, message: 'Timed out' }, 500)
    if (attempt === 10) return hang()
    return sendJson(response, { code: -1, message: 'shutting down' }, 500)
  })
  await watch.hasAsked(11)
  assert.deepEqual(watch.from(), [7, 8, 8, 8, 8, 9, 9, 9, 9, 9, 9])
  assert.deepEqual(watch.told, [hashOf(8), hashOf(9)])
  assert.deepEqual(watch.warnings, [refused, refused, refused])
})

test('the watch of Core Lightning does not fall behind what it has seen where the cursor could not be stored', async (t) => {
  const watch = await aWatch(
    t,
    (response, attempt) => {
      if (attempt < 2) sendJson(response, paid(8 + attempt), 201)
    },
    {
      options: {
        cursor: {
          read: async () => 7,
          write: async () => {
            throw new Error('the disk is full')
          },
        },
      },
    },
  )
  await watch.hasAsked(3)
  assert.deepEqual(watch.from(), [7, 8, 9])
  assert.deepEqual(watch.told, [hashOf(8), hashOf(9)])
  assert.equal(
    watch.warnings[0],
    'Core Lightning: the cursor or the listener failed; connecting again',
  )
})

test('the watch of Core Lightning hangs up on a node that does not answer when the wait is over, and not before', async (t) => {
  const timeouts = { probeEveryMs: 1_000, retryFirstMs: 1 }
  const silent = await aWatch(t, hang, { options: { timeouts: { ...timeouts, infoMs: 10 } } })
  const patient = await aWatch(t, hang, { options: { timeouts: { ...timeouts, infoMs: 5_000 } } })
  // Answers as it should, that the wait is over.
  patient.standIn.spoil(null)
  await Promise.all([silent.hasAsked(2), patient.hasAsked(2)])
  assert.deepEqual(silent.warnings.slice(0, 1), [
    'Core Lightning: waiting for a payment took too long; connecting again',
  ])
  assert.deepEqual(patient.warnings, [])
})
