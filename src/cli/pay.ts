/** `mayfly pay INVOICE`: any Lightning invoice, from the configured wallet. It is a purchase of the vault. */
import { createHash } from 'node:crypto'
import { createHttp } from '../client/http.ts'
import { createPayments } from '../client/payments.ts'
import { copiedInvoice, decodeInvoice } from '../protocol/bolt11.ts'
import { type Cli, client } from './cli.ts'
import { anyEnding, CliError, EXIT, misuse } from './exit.ts'
import { withWallet } from './invoice.ts'
import { isUnknown, leavePurchase, openPurchase, vaultStore } from './vault/purchases.ts'

export const addPay = client({
  command: 'pay',
  says: 'pay a Lightning invoice from the wallet in MAYFLY_WALLET_URL',
  takes: {
    '<invoice>': 'BOLT 11, with or without lightning:',
    '--show-preimage': 'print the preimage, which proves the payment',
  },
  examples: ['mayfly pay lnbc… --max-sats 500'],
  async run(cli, { invoice: text, showPreimage }) {
    const { bolt11, amountMsat, paymentHash } = decodeInvoice(copiedInvoice(text))
    if (amountMsat === null) {
      throw new CliError('The invoice has no amount, so it is not paid.', EXIT.notPaid)
    }
    const preimage = await pay(cli, bolt11)
    const amountSats = amountMsat / 1000
    cli.answer(
      { paid: true, amountSats, paymentHash, ...(showPreimage ? { preimage } : {}) },
      `Paid ${amountSats} sat.\n${showPreimage ? `Preimage  ${preimage}\n` : ''}`,
    )
  },
})

async function pay(cli: Cli, bolt11: string): Promise<string> {
  // Several invoices can have one payment hash.
  const hash = createHash('sha256').update(bolt11).digest('hex')
  const name = `pay-${hash.slice(0, 16)}`
  const store = vaultStore(cli, { nameFor: () => name, onDelivered: () => undefined })
  const { maxSats, signal, now } = cli
  const payments = createPayments(createHttp(cli.url, cli.traced(fetch)), { maxSats, store, now })
  try {
    return await withWallet(cli, (wallet) => {
      if (wallet) return payments.payInvoice(bolt11, { wallet, maxSats, signal })
      throw misuse(
        'No wallet is configured. Set MAYFLY_WALLET_URL, or MAYFLY_WALLET_URL_FILE to a file that contains it.',
      )
    })
  } catch (error) {
    const record = openPurchase(cli, name)
    if (record === null || !isUnknown(record)) throw error
    const { code, sentence } = anyEnding(error, cli.url)
    const giveUp = `To give it up: mayfly forget ${name}`
    throw new CliError(`${sentence} ${giveUp}`, code, { cause: error })
  } finally {
    leavePurchase(cli, name)
  }
}
