/** `mayfly buy catch|pulse`: buys a capability and saves it. `buy whisper` is `whisper send`. */
import type { Command } from 'commander'
import type { SavedCapability } from '../client/index.ts'
import { inboxAddress, ingestUrlOf } from './addresses.ts'
import { type Cli, client } from './cli.ts'
import { openDraft, planOf, resumeDraft } from './drafts.ts'
import { examples } from './examples.ts'
import { EXIT } from './exit.ts'
import { purchase, savedAs } from './purchase.ts'
import { checkName, type Product, publicPart } from './saved.ts'
import { away } from './text.ts'
import { addWhisperSend } from './whisper/send.ts'

type Options = { plan: string; name?: string; resume?: string }

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
      ),
    )
  addProduct(buy, 'catch', 'buy a webhook inbox')
  addWhisperSend(buy, 'whisper')
  addProduct(buy, 'pulse', 'buy a heartbeat monitor')
}

function addProduct(buy: Command, product: 'catch' | 'pulse', what: string): void {
  buy
    .command(product)
    .description(`${what}, and save it under a name`)
    .option('--plan <plan>', 'spark, standard or long', 'spark')
    .option('--name <name>', 'the name to save it under')
    .option('--resume <name>', 'continue this interrupted purchase')
    .addHelpText(
      'after',
      examples(
        `mayfly buy ${product}`,
        `MAYFLY_WALLET_URL=simulator: mayfly buy ${product} --plan standard --name mine`,
      ),
    )
    .action(
      client<Options>(async (cli, { plan, name, resume }) => {
        const planId = planOf(plan)
        const open =
          resume === undefined
            ? openDraft(cli, { product, planId, name: name && checkName(name) }, () => ({
                version: 1,
                product,
                planId,
                baseUrl: cli.url,
                idempotencyKey: crypto.randomUUID(),
              }))
            : resumeDraft(cli, checkName(resume))
        showPurchase(cli, open.name, await purchase(cli, open))
        return EXIT.ok
      }),
    )
}

function showPurchase(cli: Cli, name: string, saved: SavedCapability): void {
  const { baseUrl, planId, capability } = saved
  const { product, expiresAt } = capability
  const next: Record<Product, string> = {
    catch: `Send webhooks to  ${inboxAddress(saved)}\nFollow them with  mayfly catch listen ${name}\n`,
    pulse: `Ping it with      mayfly ping ${name}\nOr run a job by   mayfly pulse run ${name} -- ./job.sh\nNobody is told    until you say whom: mayfly pulse alerts ${name} --ntfy https://ntfy.sh/<topic>\n`,
    whisper: '',
  }
  cli.answer(
    { name, planId, baseUrl, ...publicPart(capability), ...ingestUrlOf(saved) },
    `${savedAs(cli, name)}It expires        ${away(expiresAt, cli.now())}, ${expiresAt}\n${next[product]}`,
  )
}
