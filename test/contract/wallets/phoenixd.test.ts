import { openWallet } from '../../../src/cli/wallet.ts'
import { phoenixdWallet } from '../../../src/client/wallets/phoenixd.ts'
import { decodeInvoice } from '../../../src/protocol/bolt11.ts'
import { testClock } from '../../support/server.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'
import { startPhoenixd } from '../../support/stand-ins/phoenixd.ts'
import { losingFetch, walletContract } from '../wallets.ts'

walletContract('phoenixd (a stand-in)', async () => {
  const clock = testClock()
  const shop = createLedger(clock)
  const standIn = await startPhoenixd({ clock, own: createLedger(clock), others: shop })
  const { baseUrl: url, password } = standIn
  const opened = await openWallet(
    url.replace('http://', `phoenixd+http://:${encodeURIComponent(password)}@`),
  )
  const ask = { amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 }
  return {
    wallet: opened.wallet,
    losingAnswer: () =>
      phoenixdWallet({ url, password, fetch: losingFetch((to) => to.endsWith('/payinvoice')) }),
    away: () => phoenixdWallet({ url: 'http://127.0.0.1:9', password }),
    invoice: async () => shop.make(ask).bolt11,
    // Of a node that there is no route to.
    unpayable: async () => createLedger(clock).make(ask).bolt11,
    timesPaid: async (bolt11) => shop.find(decodeInvoice(bolt11).paymentHash)?.timesPaid ?? 0,
    async close() {
      await opened.close()
      await standIn.close()
    },
  }
})
