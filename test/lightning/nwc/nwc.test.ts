/** A wallet over Nostr whose relays go. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createNwc, type NwcOptions } from '../../../src/lightning/nwc/nwc.ts'
import { readNwcUrl } from '../../../src/lightning/nwc/url.ts'
import { startRelay } from '../../support/nostr-relay.ts'
import { manualClock } from '../../support/shop.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'
import { startNwcWallet } from '../../support/stand-ins/nwc-wallet.ts'
import { until } from '../../support/until.ts'

const ASK = { amountMsat: 21_001, memo: 'Mayfly', expirySeconds: 901 }
// Wallet, relay and Mayfly share one thread here.
const PATIENT = { createMs: 60_000, lookupMs: 60_000, infoMs: 60_000 }

async function aWorld(t: TestContext, timeouts: NonNullable<NwcOptions['timeouts']>) {
  const clock = manualClock(Date.now())
  const own = createLedger(clock)
  const relay = await startRelay()
  const wallet = await startNwcWallet({ relayUrl: relay.url, clock, own })
  const warnings: string[] = []
  const lightning = createNwc({
    ...readNwcUrl(wallet.url),
    clock,
    timeouts,
    onWarning: (message) => warnings.push(message),
  })
  t.after(async () => {
    await lightning.close()
    wallet.close()
    await relay.stop()
  })
  return { own, relay, wallet, lightning, warnings }
}

test("a wallet's watch warns when no relay answers any more, and goes on when one does again", async (t) => {
  const timeouts = { ...PATIENT, infoMs: 2_000, probeEveryMs: 20, retryFirstMs: 1, retryMaxMs: 20 }
  const { own, relay, wallet, lightning, warnings } = await aWorld(t, timeouts)
  const told: string[] = []
  const stop = new AbortController()
  const ended = lightning.watch((hash) => told.push(hash), stop.signal)
  t.after(async () => {
    stop.abort()
    await ended
  })
  const isUnderWay = () =>
    until('a watch that tells of payments', async () => {
      const invoice = own.make(ASK)
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
