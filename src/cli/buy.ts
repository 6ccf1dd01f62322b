/** `mayfly buy catch|pulse`: buys a capability and saves it. `buy whisper` is `whisper send`. */
import type { SavedCapability } from '../client/index.ts'
import { inboxAddress, ingestUrlOf } from './addresses.ts'
import { type Cli, client } from './cli.ts'
import { type Add, group } from './declare.ts'
import { FOR_PURCHASE } from './options.ts'
import { purchase, resume, savedAs } from './purchase.ts'
import { away } from './text.ts'
import { checkName, type Product, publicPart } from './vault/saved.ts'
import { whisperSend } from './whisper/send.ts'

const buy = (product: 'catch' | 'pulse', what: string): Add =>
  client({
    command: product,
    says: `${what}, and save it under a name`,
    takes: FOR_PURCHASE,
    examples: [
      `mayfly buy ${product}`,
      `MAYFLY_WALLET_URL=simulator: mayfly buy ${product} --plan standard --name mine`,
    ],
    async run(cli, { plan: planId, name, resume: interrupted, beside }) {
      const bought =
        interrupted === undefined
          ? await purchase(cli, { product, planId, name: name && checkName(name), beside })
          : await resume(cli, checkName(interrupted))
      showPurchase(cli, bought.name, bought.saved)
    },
  })

export const addBuy = group(
  {
    command: 'buy',
    says: 'buy an inbox, a whisper or a monitor, and save it',
    examples: [
      'mayfly buy catch --name hooks           shows an invoice and waits for the payment',
      'MAYFLY_WALLET_URL=simulator: mayfly buy pulse --plan standard --max-sats 300',
      'mayfly buy catch --resume hooks         continues an interrupted purchase',
      'mayfly whisper send secret.txt          buys the reads of a whisper',
    ],
  },
  [
    buy('catch', 'buy a webhook inbox'),
    whisperSend('buy whisper'),
    buy('pulse', 'buy a heartbeat monitor'),
  ],
)

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
