import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openWallet, pinnedFetch } from '../../../src/cli/wallet.ts'
import { lndWallet } from '../../../src/client/wallets/lnd.ts'
import { decodeInvoice } from '../../../src/protocol/bolt11.ts'
import { missingNodes, startTestbed } from '../../support/nodes/testbed.ts'
import { OPENING, PAYING_MACAROON } from '../../support/wallet-recipes.ts'
import { losingFetch, walletContract } from '../wallets.ts'

walletContract(
  'LND',
  async () => {
    const testbed = await startTestbed()
    const { alice, bob } = testbed
    const folder = mkdtempSync(join(tmpdir(), 'mayfly-wallet-'))
    const macaroonHex = await bob.bake(...PAYING_MACAROON)
    const macaroonFile = join(folder, 'bob.macaroon')
    writeFileSync(macaroonFile, macaroonHex)
    const opened = await openWallet(
      bob.baseUrl.replace('https', 'lnd+https') +
        `?macaroon=${encodeURIComponent(macaroonFile)}` +
        `&cert=${encodeURIComponent(bob.certificateFile)}`,
      OPENING,
    )
    const pinned = pinnedFetch(bob.certificate())

    async function invoice(valueSats = '21'): Promise<string> {
      const { payment_request } = await alice.post('/v1/invoices', { value: valueSats })
      return String(payment_request)
    }

    return {
      wallet: opened.wallet,
      losingAnswer: () =>
        lndWallet({
          url: bob.baseUrl,
          macaroonHex,
          fetch: losingFetch((url) => url.endsWith('/v2/router/send'), pinned.fetch),
        }),
      away: () => lndWallet({ url: 'https://127.0.0.1:9', macaroonHex, fetch: pinned.fetch }),
      invoice,
      // Twice what bob has in the channel.
      unpayable: () => invoice('16000000'),
      async timesPaid(bolt11) {
        const hash = decodeInvoice(bolt11).paymentHash
        const { state, value_msat, amt_paid_msat } = await alice.get(`/v1/invoice/${hash}`)
        return state === 'SETTLED' ? Number(amt_paid_msat) / Number(value_msat) : 0
      },
      async close() {
        await opened.close()
        await pinned.close()
        rmSync(folder, { recursive: true })
        await testbed.close()
      },
    }
  },
  { skip: await missingNodes() },
)
