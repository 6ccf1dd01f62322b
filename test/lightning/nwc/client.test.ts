/** The client for NIP-47 over a real relay: what it waits for, and what it survives. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Nip47ResponseDecodingError, Nip47WalletError } from '@getalby/sdk/nwc'
import { createNwcClient, readable } from '../../../src/lightning/nwc/client.ts'
import { createNwc } from '../../../src/lightning/nwc/nwc.ts'
import { readNwcUrl } from '../../../src/lightning/urls.ts'
import { startRelay } from '../../support/nostr-relay.ts'
import { manualClock } from '../../support/shop.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'
import { startNwcWallet } from '../../support/stand-ins/nwc-wallet.ts'
import { until } from '../../support/until.ts'

// Wallet, relay and client share one thread here.
const PATIENT_MS = 60_000

async function aWorld(t: TestContext, url: (own: string) => string = (own) => own) {
  const clock = manualClock(Date.now())
  const own = createLedger(clock)
  const relay = await startRelay()
  const wallet = await startNwcWallet({ relayUrl: relay.url, clock, own })
  const withoutClient = relay.connections()
  const client = createNwcClient(url(wallet.url))
  t.after(async () => {
    client.close()
    wallet.close()
    await relay.stop()
  })
  return { client, wallet, own, relay, clock, withoutClient }
}

test('a text of a wallet at which the client would throw is read as an empty one, and any other as it is', () => {
  for (const text of [
    ...['', '{', 'null', '7', '"text"', '[]', '[{"result":{}}]'],
    ...['{"toString":1}', '{}', '[]', '[{"toString":1}]'].flatMap((field) => [
      `{"error":{"code":${field},"message":"no"}}`,
      `{"error":{"code":"OTHER","message":${field}}}`,
    ]),
  ]) {
    assert.equal(readable(text), '', text)
  }
  for (const text of [
    ...['{}', '{"result":{}}', '{"error":null}', '{"error":"odd"}', '{"error":[{}]}'],
    ...['"OTHER"', '404', 'true', 'null'].flatMap((field) => [
      `{"error":{"code":${field},"message":"no"}}`,
      `{"error":{"code":"OTHER","message":${field}}}`,
    ]),
    '{"error":{}, "result":{"message":{"toString":1}}}',
  ]) {
    assert.equal(readable(text), text)
  }
})

test('a notification without a payment is read as an empty text, because the client would print it', () => {
  const said = '"notification_type":"payment_received"'
  const payment = '"notification":{"preimage":"ab"}'
  for (const text of [
    `{${said}}`,
    `{${said},"preimage":"ab"}`,
    ...['null', '"ab"', '["ab"]', '0'].map((field) => `{${said},"notification":${field}}`),
  ]) {
    assert.equal(readable(text), '', text)
  }
  for (const text of [`{${said},${payment}}`, `{${payment}}`]) assert.equal(readable(text), text)
})

test('what nobody can read in an answer of a wallet is told as that, and the next answer is read', async (t) => {
  const { client, wallet } = await aWorld(t)
  const ask = () => client.request('get_info', {}, PATIENT_MS)
  for (const text of ['{', '{"error":{"code":"OTHER","message":{"toString":1}}}']) {
    wallet.garble(text)
    await assert.rejects(ask(), Nip47ResponseDecodingError, text)
  }
  wallet.garble('not encrypted', 'raw')
  await assert.rejects(ask(), Nip47ResponseDecodingError)
  for (const [text, code, message] of [
    ['{"error":{"code":"NOT_FOUND","message":"no"}}', 'NOT_FOUND', 'no'],
    ['{"error":{"code":404,"message":7}}', 404, '7'],
    ['{}', 'INTERNAL', 'unknown Error'],
  ] as const) {
    wallet.garble(text)
    const refused = ask()
    await assert.rejects(refused, Nip47WalletError, text)
    await assert.rejects(refused, { code, message }, text)
  }
  wallet.garble(null)
  assert.equal(((await ask()) as { network: string }).network, 'regtest')
})

test('one relay of several is enough, and without any the client says so', async (t) => {
  const { client, relay } = await aWorld(t, (own) =>
    own.replace('&secret', '&relay=ws%3A%2F%2F127.0.0.1%3A1&secret'),
  )
  await client.request('get_info', {}, PATIENT_MS)
  await relay.stop()
  await until('word that no relay is there', async () => {
    // The first may still find the connection that is about to be closed.
    const error = await client.request('get_info', {}, 300).catch((each) => each)
    return error instanceof AggregateError
  })
})

test('a client that is closed leaves no connection to its relay', async (t) => {
  const { client, relay, withoutClient } = await aWorld(t)
  await client.request('get_info', {}, PATIENT_MS)
  assert.equal(relay.connections(), withoutClient + 1)
  client.close()
  await until('the end of the connection', () => relay.connections() === withoutClient)
})

test("a wallet's watch warns when no relay answers any more, and goes on when one does again", async (t) => {
  const { own, relay, wallet, clock } = await aWorld(t)
  const warnings: string[] = []
  const lightning = createNwc({
    ...readNwcUrl(wallet.url),
    clock,
    timeouts: { infoMs: 2_000, probeEveryMs: 20, retryFirstMs: 1, retryMaxMs: 20 },
    onWarning: (message) => warnings.push(message),
  })
  const told: string[] = []
  const stop = new AbortController()
  const ended = lightning.watch((hash) => told.push(hash), stop.signal)
  t.after(async () => {
    stop.abort()
    await ended
    await lightning.close()
  })
  const isUnderWay = () =>
    until('a watch that tells of payments', async () => {
      const invoice = own.make({ amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 901 })
      await wallet.tell(invoice)
      await until('word of it', () => told.includes(invoice.paymentHash), { withinMs: 1_000 })
      return true
    })
  await isUnderWay()
  await relay.stop()
  await until('a warning', () => warnings.length > 0)
  assert.match(
    warnings[0] ?? '',
    /^NWC: (asking for the wallet|following the payments) (failed|took too long); connecting again$/,
  )
  await relay.start()
  await isUnderWay()
})
