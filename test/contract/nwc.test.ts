import { createNwc } from '../../src/lightning/nwc/nwc.ts'
import { readNwcUrl } from '../../src/lightning/urls.ts'
import { startRelay } from '../support/nostr-relay.ts'
import { testClock } from '../support/server.ts'
import { createLedger } from '../support/stand-ins/ledger.ts'
import { startNwcWallet } from '../support/stand-ins/nwc-wallet.ts'
import { lightningContract } from './lightning.ts'

const GRACE_SECONDS = 600

// Wallet, relay and Mayfly share one thread here, and each signs and encrypts all that passes.
const PATIENT = { createMs: 60_000, lookupMs: 60_000, infoMs: 60_000 }

for (const encryption of ['nip44_v2', 'nip04'] as const) {
  lightningContract(`NWC over a real relay, ${encryption}`, async () => {
    const clock = testClock()
    const own = createLedger(clock)
    const relay = await startRelay()
    const wallet = await startNwcWallet({ relayUrl: relay.url, clock, own, encryption })
    const lightning = createNwc({ ...readNwcUrl(wallet.url), clock, timeouts: PATIENT })
    return {
      lightning,
      isShared: true,
      pay: async (bolt11) => own.pay(bolt11),
      settleLate: own.settleLate,
      makeExpire: async (seconds) => clock.advance((seconds + GRACE_SECONDS + 1) * 1000),
      async close() {
        await lightning.close()
        wallet.close()
        await relay.stop()
      },
    }
  })
}
