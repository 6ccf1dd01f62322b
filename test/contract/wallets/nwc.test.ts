import { NWCClient } from '@getalby/sdk/nwc'
import { openWallet } from '../../../src/cli/wallet.ts'
import { nwcWallet } from '../../../src/client/wallets/nwc.ts'
import { startRelay } from '../../support/nostr-relay.ts'
import { testClock } from '../../support/server.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'
import { startNwcWallet } from '../../support/stand-ins/nwc-wallet.ts'
import { OPENING } from '../../support/wallet-recipes.ts'
import { aPayee, walletContract } from '../wallets.ts'

walletContract('NWC over a real relay', async () => {
  const clock = testClock()
  const payee = aPayee(clock)
  const relay = await startRelay()
  const own = createLedger(clock)
  const service = await startNwcWallet({ relayUrl: relay.url, clock, own, others: payee.shop })
  const opened = await openWallet(service.url, OPENING)
  const clients: NWCClient[] = []

  function client(url: string): NWCClient {
    const made = new NWCClient({ nostrWalletConnectUrl: url })
    clients.push(made)
    return made
  }

  return {
    wallet: opened.wallet,
    losingAnswer() {
      const real = client(service.url)
      return nwcWallet({
        async payInvoice(request) {
          await real.payInvoice(request)
          throw new Error('the answer was lost')
        },
        lookupInvoice: (request) => real.lookupInvoice(request),
      })
    },
    away: () => nwcWallet(client(service.url.replace(/127\.0\.0\.1%3A\d+/, '127.0.0.1%3A9'))),
    ...payee,
    async close() {
      await opened.close()
      for (const each of clients) each.close()
      service.close()
      await relay.stop()
    },
  }
})
