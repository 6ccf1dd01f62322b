import { openWallet } from '../../../src/cli/wallet.ts'
import { phoenixdWallet } from '../../../src/client/wallets/phoenixd.ts'
import { testClock } from '../../support/server.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'
import { startPhoenixd } from '../../support/stand-ins/phoenixd.ts'
import { OPENING } from '../../support/wallet-recipes.ts'
import { aPayee, losingFetch, walletContract } from '../wallets.ts'

walletContract('phoenixd (a stand-in)', async () => {
  const clock = testClock()
  const payee = aPayee(clock)
  const standIn = await startPhoenixd({ clock, own: createLedger(clock), others: payee.shop })
  const { baseUrl: url, password } = standIn
  const opened = await openWallet(
    url.replace('http://', `phoenixd+http://:${encodeURIComponent(password)}@`),
    OPENING,
  )
  return {
    wallet: opened.wallet,
    losingAnswer: () =>
      phoenixdWallet({ url, password, fetch: losingFetch((to) => to.endsWith('/payinvoice')) }),
    away: () => phoenixdWallet({ url: 'http://127.0.0.1:9', password }),
    ...payee,
    async close() {
      await opened.close()
      await standIn.close()
    },
  }
})
