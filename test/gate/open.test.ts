/** Which provider GATE asks: the simulator in its place, or the Lightning Address, but never itself. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGateChallenges } from '../../src/gate/challenge.ts'
import { openProvider } from '../../src/gate/open.ts'
import { createReceipts } from '../../src/gate/receipts.ts'
import { createGateStore } from '../../src/gate/store.ts'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { pocketWallet } from '../support/gate.ts'
import { aShop } from '../support/gate-app.ts'
import { startLnurlServer } from '../support/lnurl-server.ts'
import { testClock } from '../support/server.ts'
import { aMigratedDatabaseUrl, openDatabase } from '../support/store.ts'

test('an invoice of the simulator lives as long as its quote, and for two minutes at least', async (t) => {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  t.after(() => db.close())
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

test('an invoice is asked of the Lightning Address where there is no simulator', async (t) => {
  const clock = testClock()
  const lnurl = await startLnurlServer(t, pocketWallet(clock))
  const provider = openProvider({
    simulator: null,
    quoteSeconds: 900,
    outbound: { allowed: new Set([lnurl.host]) },
    network: 'regtest',
    clock,
  })
  t.after(() => provider.close())
  const { bolt11 } = await provider.invoice(lnurl.address, 7000)
  assert.equal(decodeInvoice(bolt11).amountMsat, 7000)
})

test('an invoice is never asked of this service itself, whatever name it has', async (t) => {
  const { create, db, logged } = await aShop(t, { isSimulated: false })
  const address = { text: `update gate_project set address = 'alice@gate.mayfly.org'`, values: [] }
  await db.write({ lockKey: 'a test', statements: { address } })
  const { status, body } = await create()
  assert.deepEqual([status, body], [503, { error: 'checkout unavailable' }])
  assert.deepEqual(
    logged.map(({ event, reason }) => [event, reason]),
    [['gate.provider_failed', 'the provider is this service']],
  )
})

test('receipts and challenges are signed with the keys of their purpose, so that a newer version accepts them', async (t) => {
  const { get, credential, db } = await aShop(t)
  const secrets = createSecrets([new Uint8Array(32).fill(1)])
  const { jwks } = await createReceipts(secrets.keys('gate receipt'))
  assert.deepEqual((await get('/.well-known/gate-jwks.json')).body, jwks)
  const { quote, preimage, challenge } = await credential()
  const intent = await createGateStore(db).intent(quote.intentId)
  const { isFor } = createGateChallenges({
    keys: secrets.keys('gate challenge'),
    publicUrl: () => 'https://gate.mayfly.org',
  })
  assert.equal(intent && isFor(intent, { challenge, payload: { preimage } }), true)
})
