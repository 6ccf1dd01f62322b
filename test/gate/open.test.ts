/** Which provider GATE asks: the simulator in its place, or the Lightning Address, but never itself. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGateChallenges } from '../../src/gate/challenge.ts'
import { openProvider } from '../../src/gate/open.ts'
import { createSimulatedProvider, failureReason } from '../../src/gate/provider.ts'
import { createReceipts } from '../../src/gate/receipts.ts'
import type { IntentRow } from '../../src/gate/store.ts'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { LnurlError } from '../../src/protocol/lnurl.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { register } from '../support/gate.ts'
import { aShop, ROTATED } from '../support/gate-app.ts'
import { startServer, testClock } from '../support/server.ts'
import { createLedger } from '../support/stand-ins/ledger.ts'
import { startPhoenixd } from '../support/stand-ins/phoenixd.ts'
import { aDatabase, query } from '../support/store.ts'

test('an invoice of the simulator lives as long as its quote, and for two minutes at least', async (t) => {
  const db = await aDatabase(t)
  const clock = testClock()
  const simulator = await createSimulator({ db, clock })
  for (const [quoteSeconds, lives] of [
    [60, 120],
    [120, 120],
    [900, 900],
  ] as const) {
    const provider = openProvider({
      simulator,
      quoteSeconds,
      outbound: { allowed: new Set<string>() },
      network: 'regtest',
      clock,
    })
    const { bolt11 } = await provider.invoice('alice@example.com', 1000)
    assert.equal(decodeInvoice(bolt11).expirySeconds, lives)
  }
})

test('the simulator in place of a provider makes invoices for any address, and tells which are paid', async (t) => {
  const db = await aDatabase(t)
  const clock = testClock()
  const lightning = await createSimulator({ db, clock })
  const allowed = new Set<string>()
  const provider = createSimulatedProvider({ lightning, allowed, invoiceSeconds: 901, clock })
  const address = 'alice@example.com'
  assert.equal(await provider.probe(address, [1]), 'provider')
  const { bolt11, paymentHash, verify, ...rest } = await provider.invoice(address, 7_000)
  const invoice = decodeInvoice(bolt11)
  assert.deepEqual(
    [invoice.amountMsat, invoice.description, invoice.paymentHash, invoice.expirySeconds],
    [7_000, 'Mayfly GATE on the simulator', paymentHash, 901],
  )
  assert.equal(verify, 'simulator:')
  assert.deepEqual(rest, { expiresAt: invoice.expiresAt })
  const isSettled = () => provider.isSettled({ address, bolt11, paymentHash, verify: 'simulator:' })
  assert.equal(await isSettled(), false)
  await lightning.pay(bolt11)
  assert.equal(await isSettled(), true)
  for (const wrong of ['alice', 'alice@127.0.0.1']) {
    await assert.rejects(provider.probe(wrong, [1]), LnurlError)
    await assert.rejects(provider.invoice(wrong, 1_000), LnurlError)
  }
  await provider.close()
})

test("a provider's failure has a reason, and a mistake of ours is thrown on", () => {
  assert.equal(failureReason(new LnurlError('it is away')), 'it is away')
  const ours = new TypeError('undefined is not a function')
  assert.throws(() => failureReason(ours), ours)
})

test('an invoice is never asked of this service itself, whatever name it has', async (t) => {
  const clock = testClock()
  const phoenixd = await startPhoenixd({ clock, own: createLedger(clock) })
  t.after(() => phoenixd.close())
  const server = await startServer(t, {
    MAYFLY_GATE: 'on',
    MAYFLY_BASE_URL: 'https://gate.mayfly.org',
    MAYFLY_LIGHTNING_URL: phoenixd.baseUrl.replace(
      'http://',
      `phoenixd+http://:${encodeURIComponent(phoenixd.password)}@`,
    ),
  })
  const gate = server.mayfly.gate(await register(server))
  await query(server, `update gate_project set address = 'alice@gate.mayfly.org'`)
  const request = { route: 'ping', method: 'GET', path: '/ping' }
  await assert.rejects(gate.intent(request), { phrase: 'checkout unavailable' })
  const refused = server.logged.map((line) => JSON.parse(line))
  const reasons = refused.filter(({ event }) => event === 'gate.provider_failed')
  assert.deepEqual(
    reasons.map(({ reason }) => reason),
    ['the provider is this service'],
  )
})

test('receipts and challenges are signed with the newest key of their purpose, so that a newer version accepts them', async (t) => {
  const { get, credential, server, restart } = await aShop(t)
  await restart({ MAYFLY_SECRET: ROTATED })
  const secrets = createSecrets([2, 1].map((byte) => new Uint8Array(32).fill(byte)) as [Uint8Array])
  const { jwks } = await createReceipts(secrets.keys('gate receipt'))
  assert.deepEqual((await get('/.well-known/gate-jwks.json')).body, jwks)
  const { quote, preimage, challenge } = await credential()
  const [intent] = await query(
    server,
    'select * from gate_intent where intent_id = $1',
    quote.intentId,
  )
  const { isFor } = createGateChallenges({
    keys: [secrets.keys('gate challenge')[0]],
    publicUrl: () => 'https://gate.mayfly.org',
  })
  assert.equal(intent && isFor(intent as IntentRow, { challenge, payload: { preimage } }), true)
})
