/** `mayfly pay INVOICE`: any Lightning invoice, from the configured wallet. */
import type { Command } from 'commander'
import { client } from './cli.ts'
import { examples } from './examples.ts'
import { CliError, EXIT } from './exit.ts'
import { readPayable, withWallet } from './invoice.ts'

export function addPay(program: Command): void {
  program
    .command('pay')
    .description('pay a Lightning invoice from the wallet in MAYFLY_WALLET_URL')
    .argument('<invoice>', 'BOLT 11, with or without lightning:')
    .option('--show-preimage', 'print the preimage: whoever has it can prove the payment')
    .addHelpText('after', examples('mayfly pay lnbc… --max-sats 500'))
    .action(
      client<{ showPreimage?: true }>(async (cli, { showPreimage }, [text]) => {
        const bolt11 = text.replace(/^lightning:/i, '')
        const { amountMsat, paymentHash } = readPayable(bolt11, cli.maxSats, cli.now())
        const { preimage } = await withWallet(cli, (wallet) => {
          if (wallet === null) throw noWallet()
          return wallet.pay(bolt11, { signal: cli.signal })
        })
        const amountSats = Number(amountMsat) / 1000
        cli.answer(
          { paid: true, amountSats, paymentHash, ...(showPreimage ? { preimage } : {}) },
          `Paid ${amountSats} sat.\n${showPreimage ? `Preimage  ${preimage}\n` : ''}`,
        )
        return EXIT.ok
      }),
    )
}

const noWallet = (): CliError =>
  new CliError(
    'No wallet is configured. Set MAYFLY_WALLET_URL, or MAYFLY_WALLET_URL_FILE to a file that contains it.',
    EXIT.usage,
  )
