/** `mayfly buy catch|pulse`: buys a capability and saves it. `buy whisper` is `whisper send`. */
import type { Command } from 'commander'
import type { SavedCapability } from '../client/index.ts'
import { inboxAddress, ingestUrlOf } from './addresses.ts'
import { type Cli, client } from './cli.ts'
import { forPurchase, type PurchaseOptions } from './options.ts'
import { purchase, resume, savedAs } from './purchase.ts'
import { away, examples } from './text.ts'
import { checkName, type Product, publicPart } from './vault/saved.ts'
import { addWhisperSend } from './whisper/send.ts'

export function addBuy(program: Command): void {
  const buy = program
    .command('buy')
    .description('buy an inbox, a whisper or a monitor, and save it')
    .addHelpText(
      'after',
      examples(
        'mayfly buy catch --name hooks           shows an invoice and waits for the payment',
        'MAYFLY_WALLET_URL=simulator: mayfly buy pulse --plan standard --max-sats 300',
        'mayfly buy catch --resume hooks         continues an interrupted purchase',
        'mayfly whisper send secret.txt          buys the reads of a whisper',
      ),
    )
  addProduct(buy, 'catch', 'buy a webhook inbox')
  addWhisperSend(buy, 'whisper')
  addProduct(buy, 'pulse', 'buy a heartbeat monitor')
}

function addProduct(buy: Command, product: 'catch' | 'pulse', what: string): void {
  client<PurchaseOptions>(
    forPurchase(buy.command(product)).description(`${what}, and save it under a name`),
    {
      examples: [
        `mayfly buy ${product}`,
        `MAYFLY_WALLET_URL=simulator: mayfly buy ${product} --plan standard --name mine`,
      ],
    },
    async (cli, { plan: planId, name, resume: interrupted, beside }) => {
      const bought =
        interrupted === undefined
          ? await purchase(cli, { product, planId, name: name && checkName(name), beside })
          : await resume(cli, checkName(interrupted))
      showPurchase(cli, bought.name, bought.saved)
    },
  )
}

function showPurchase(cli: Cli, name: string, saved: SavedCapability): void {
  const { baseUrl, planId, capability } = saved
  const { product, expiresAt } = capability
  const next: Record<Product, string> = {
    catch: `Send webhooks to  ${inboxAddress(saved)}\nFollow them with  mayfly catch listen ${name}\n`,
    pulse: `Ping it with      mayfly ping ${name}\nOr run a job by   mayfly pulse run ${name} -- ./job.sh\nGet alerts by     mayfly alerts ${name} --ntfy https://ntfy.sh/<topic>\n`,
    whisper: '',
  }
  cli.answer(
    { name, planId, baseUrl, ...publicPart(capability), ...ingestUrlOf(saved) },
    `${savedAs(cli, name)}It expires        ${away(expiresAt, cli.now())}, ${expiresAt}\n${next[product]}`,
  )
}
