/** Invoices on the command line: shown to the user, or paid by a wallet below the ceiling. */
import encodeQR from 'qr'
import type { PaymentQuote } from '../client/index.ts'
import type { Wallet } from '../client/wallet.ts'
import { messageOf } from '../lib/errors.ts'
import type { Cli } from './cli.ts'
import { misuse } from './exit.ts'

/** Runs `work` with the wallet of MAYFLY_WALLET_URL, or with null if that is not set. */
export async function withWallet<T>(
  cli: Pick<Cli, 'walletUrl' | 'url' | 'traced'>,
  work: (wallet: Wallet | null) => Promise<T>,
): Promise<T> {
  const { walletUrl } = cli
  if (walletUrl === null) return work(null)
  // Loaded only when needed, since the wallets' modules are large.
  const { openWallet } = await import('./wallet.ts')
  const { wallet, close } = await openWallet(walletUrl, cli).catch((error) => {
    const sentence = messageOf(error)
    throw misuse(`${sentence.replace(/\.$/, '')}.`)
  })
  try {
    return await work(wallet)
  } finally {
    await close()
  }
}

/** Shows an invoice to be paid elsewhere: its text, and on a terminal a QR code. */
export function showInvoice(cli: Cli, quote: PaymentQuote): void {
  const { amountSats, bolt11, expiresAt, network } = quote
  if (cli.isJson) {
    cli.answer({ invoice: quote }, '')
    return
  }
  const where = network === 'mainnet' ? '' : ` on ${network}: no real money`
  const until = new Date(expiresAt).toLocaleTimeString('en-GB')
  const lines = [
    ...qrCode(`lightning:${bolt11}`, process.stdout),
    `Pay ${amountSats} sat${where}, until ${until}:`,
    '',
    bolt11,
    '',
    `lightning:${bolt11}`,
    '',
  ]
  cli.answer(null, `${lines.join('\n')}\n`)
}

/** A QR code, if the terminal is wide enough for it. */
function qrCode(text: string, { isTTY, columns }: { isTTY?: boolean; columns?: number }): string[] {
  if (!isTTY) return []
  // Upper case makes a smaller code, and wallets accept both cases.
  const code = encodeQR(text.toUpperCase(), 'ascii', { ecc: 'low', border: 2 })
  return code.indexOf('\n') <= (columns ?? 80) ? [code] : []
}
