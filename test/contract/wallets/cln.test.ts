import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openWallet, pinnedFetch } from '../../../src/cli/wallet.ts'
import { clnWallet } from '../../../src/client/wallets/cln.ts'
import { testClock } from '../../support/server.ts'
import { CERTIFICATE } from '../../support/stand-ins/certificate.ts'
import { startCln } from '../../support/stand-ins/cln.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'
import { OPENING, PAYING_RUNE } from '../../support/wallet-recipes.ts'
import { aPayee, losingFetch, walletContract } from '../wallets.ts'

walletContract('Core Lightning (a stand-in)', async () => {
  const clock = testClock()
  const payee = aPayee(clock)
  const standIn = await startCln({ clock, own: createLedger(clock), others: payee.shop })
  const { baseUrl: url } = standIn
  const rune = standIn.restricted(PAYING_RUNE)
  const folder = mkdtempSync(join(tmpdir(), 'mayfly-wallet-'))
  const file = (name: string) => encodeURIComponent(join(folder, name))
  writeFileSync(join(folder, 'rune'), rune)
  writeFileSync(join(folder, 'ca.pem'), CERTIFICATE)
  const query = `rune=${file('rune')}&cert=${file('ca.pem')}`
  const opened = await openWallet(`${url.replace('https:', 'cln+https:')}?${query}`, OPENING)
  const pinned = pinnedFetch(CERTIFICATE)
  return {
    wallet: opened.wallet,
    losingAnswer: () =>
      clnWallet({ url, rune, fetch: losingFetch((to) => to.endsWith('/v1/pay'), pinned.fetch) }),
    away: () => clnWallet({ url: 'http://127.0.0.1:9', rune }),
    ...payee,
    async close() {
      await opened.close()
      await pinned.close()
      rmSync(folder, { recursive: true })
      await standIn.close()
    },
  }
})
