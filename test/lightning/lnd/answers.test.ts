/** What createLnd makes of answers that are wrong, broken, huge, slow or not LND's at all. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/lib/clock.ts'
import { UnknownInvoice } from '../../../src/lightning/lightning.ts'
import { createLnd } from '../../../src/lightning/lnd/lnd.ts'
import type { Fault } from '../../support/stand-ins/http-server.ts'
import { invoice, MACAROON, newInvoice, PAYMENT_HASH, send, startFakeLnd } from './fake-lnd.ts'

const ASK = { amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 }
const MADE = 'POST /v1/invoices'
const SEEN = `GET /v1/invoice/${PAYMENT_HASH}`

test("LND's client sends the amount in msat, the expiry and the macaroon, and hints only when told", async () => {
  for (const isPrivate of [false, true]) {
    await using world = await aWorld(() => false, { isPrivate })
    await world.lnd.createInvoice(ASK)
    const { body, headers } = world.fake.requests.find(({ line }) => line === MADE) ?? {}
    assert.deepEqual(JSON.parse(body ?? ''), {
      value_msat: '21000',
      memo: 'Mayfly',
      expiry: '900',
      private: isPrivate,
    })
    assert.equal(headers?.['grpc-metadata-macaroon'], MACAROON)
  }
})

const malformed: [what: string, body: unknown][] = [
  ['HTML', '<html>Welcome</html>'],
  ['nothing', ''],
  ['null', null],
  ['a list', []],
  ['no fields', {}],
  ['a hash that is no base64', { ...newInvoice(), ...invoice({ r_hash: '???' }) }],
  ['a short hash', { ...newInvoice(), ...invoice({ r_hash: 'AAAA' }) }],
  ['numbers for texts', { r_hash: 1, payment_request: 2, state: 3, settle_index: 4 }],
  ['more than 4 MiB', ' '.repeat(4 * 1024 * 1024) + JSON.stringify(invoice())],
]
for (const [what, body] of malformed) {
  test(`LND's client refuses an answer with ${what}`, async () => {
    await using world = await aWorld(
      ({ line }, to) => (line === MADE || line === SEEN) && send(to, body),
    )
    await assert.rejects(world.lnd.createInvoice(ASK), { reason: 'malformed' })
    await assert.rejects(world.lnd.lookupInvoice(PAYMENT_HASH), { reason: 'malformed' })
  })
}

test("LND's client reads the states of LND, takes a held payment as open, and refuses an unknown state", async () => {
  let state = ''
  await using world = await aWorld(({ line }, to) => line === SEEN && send(to, invoice({ state })))
  const outcomes: unknown[] = []
  for (state of ['OPEN', 'ACCEPTED', 'SETTLED', 'CANCELED', 'EXPLODED']) {
    outcomes.push(await world.lnd.lookupInvoice(PAYMENT_HASH).catch((error) => error.reason))
  }
  assert.deepEqual(outcomes, [
    { state: 'open' },
    { state: 'open' },
    { state: 'settled' },
    { state: 'dead', isFinal: true },
    'malformed',
  ])
})

test("LND's client refuses an answer about another invoice, even a settled one", async () => {
  const other = invoice({ r_hash: Buffer.alloc(32).toString('base64'), state: 'SETTLED' })
  await using world = await aWorld(({ line }, to) => line === SEEN && send(to, other))
  await assert.rejects(world.lnd.lookupInvoice(PAYMENT_HASH), { reason: 'malformed' })
})

test("LND's client takes the 404 of LND alone for an unknown invoice", async () => {
  const unknown = { code: 5, message: 'unable to locate invoice', details: [] }
  const answers: [status: number, body: unknown, expected: string][] = [
    [404, unknown, UnknownInvoice.name],
    [404, { code: 5, message: 'Not Found', details: [] }, 'NodeError'],
    [404, '<html>404</html>', 'NodeError'],
    [404, '', 'NodeError'],
    [500, { code: 2, message: 'permission denied', details: [] }, 'NodeError'],
    [503, 'upstream is away', 'NodeError'],
  ]
  for (const [status, body, expected] of answers) {
    await using world = await aWorld(({ line }, to) => line === SEEN && send(to, body, status))
    await assert.rejects(world.lnd.lookupInvoice(PAYMENT_HASH), { name: expected })
  }
})

test("LND's client takes an answer for a refusal of LND if it has a number for its code and a text for its message", async () => {
  let body: unknown
  await using world = await aWorld(({ line }, to) => line === SEEN && send(to, body, 500))
  for (body of [
    ...['', 'null', '[]', '{}', '<html>'],
    { code: 7 },
    { message: 'no such invoice' },
    { code: '7', message: 'no such invoice' },
    { code: 7, message: ['no such invoice'] },
    { error: 'no such invoice' },
    { error: { code: '7', message: 'no such invoice' } },
  ]) {
    await assert.rejects(world.lnd.lookupInvoice(PAYMENT_HASH), {
      reason: 'malformed',
      message: 'LND: looking up an invoice got HTTP 500 that is not of LND',
      answer: undefined,
    })
  }
  const fields = { code: 7, message: 'no such invoice' }
  for (body of [fields, { ...fields, details: [] }, { error: { ...fields, http_code: 404 } }]) {
    await assert.rejects(world.lnd.lookupInvoice(PAYMENT_HASH), {
      reason: 'refused',
      message: 'LND: looking up an invoice was refused: no such invoice',
      answer: fields,
    })
  }
})

test("LND's client does not follow a redirect", async () => {
  await using world = await aWorld(({ line }, to) => {
    if (line !== SEEN) return false
    to.writeHead(302, { location: '/v1/getinfo' }).end()
    return true
  })
  await assert.rejects(world.lnd.lookupInvoice(PAYMENT_HASH), { reason: 'malformed' })
})

test("LND's client puts no macaroon, preimage or invoice of an answer into an error", async () => {
  const preimage = 'f'.repeat(64)
  const { payment_request = '' } = newInvoice()
  const message = `bad macaroon ${MACAROON} for ${preimage} and ${payment_request}\n${preimage}`
  await using world = await aWorld(
    ({ line }, to) => line === SEEN && send(to, { code: 2, message, details: [] }, 500),
  )
  await assert.rejects(world.lnd.lookupInvoice(PAYMENT_HASH), {
    message: 'LND: looking up an invoice was refused: bad macaroon … for … and … …',
  })
})

test("LND's client says its network, and whether the node is in sync", async () => {
  const chains = [{ chain: 'bitcoin', network: 'signet' }]
  for (const synced of [false, true]) {
    await using world = await aWorld(
      ({ line }, to) => line.endsWith('getinfo') && send(to, { chains, synced_to_chain: synced }),
    )
    assert.deepEqual(await world.lnd.info(), { network: 'signet', synced, nodeId: null })
  }
})

async function aWorld(answer: Fault = () => false, { isPrivate = false } = {}) {
  const fake = await startFakeLnd(answer)
  const lnd = createLnd({
    baseUrl: fake.baseUrl,
    macaroon: MACAROON,
    certificate: undefined,
    private: isPrivate,
    clock: systemClock,
    cursor: { read: async () => 0, write: async () => {} },
  })
  return {
    fake,
    lnd,
    async [Symbol.asyncDispose]() {
      await lnd.close()
      await fake.close()
    },
  }
}
