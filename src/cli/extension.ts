/** `mayfly extend`, and the same for the tool of hosts: buys the plan of what is saved once more, before it ends. */
import type { PlanId } from '../lib/product-names.ts'
import { type Cli, client } from './cli.ts'
import { type Caller, extension, resume, savedAs } from './purchase.ts'
import { away } from './text.ts'
import { findPurchase } from './vault/purchases.ts'
import { checkName, loadExtendable, type SavedExtendable } from './vault/saved.ts'

export const addExtend = client({
  command: 'extend',
  says: 'buy the plan of an inbox or a monitor once more, before it ends',
  takes: { '<name>': 'its name' },
  examples: [
    'mayfly extend hooks                     shows an invoice and waits for the payment',
    'MAYFLY_WALLET_URL=simulator: mayfly extend hooks',
  ],
  async run(cli, { name: given }) {
    const name = checkName(given)
    const done = await extendSaved(cli, name)
    if ('expiresAt' in done) {
      const { expiresAt } = done
      cli.answer(
        { name, extended: true, expiresAt },
        `${name} is extended. It expires ${away(expiresAt, cli.now())}, ${expiresAt}\n`,
      )
      return
    }
    const { publicId } = done.replacement.capability
    cli.answer(
      { name: done.name, extended: false, publicId },
      `${name} had ended before it was paid, so the service sold a new one in its place.\n${savedAs(cli, done.name)}`,
    )
  },
})

/** The new end, or what was sold in place of one that had ended, and the name under which that is saved. */
export type Done = { expiresAt: string } | { replacement: SavedExtendable; name: string }

/**
 * A caller that repeats its request says from which end it counts: what lasts longer already is not extended. One that
 * has asked the person names the plan that it asked about.
 */
export type ExtendingCaller = Caller & { endsAt?: number; planId?: PlanId }

/** Extends what is saved under this name, or continues what was interrupted. @throws CliError */
export async function extendSaved(
  cli: Cli,
  name: string,
  { endsAt = Number.POSITIVE_INFINITY, planId, ...caller }: ExtendingCaller = {},
): Promise<Done> {
  const saved = loadExtendable(cli, name)
  const open = findPurchase(cli, name)
  const { expiresAt } = saved.capability
  if (open === null && Date.parse(expiresAt) > endsAt) return { expiresAt }
  const planOf = async () => planId ?? saved.planId ?? (await statusOf(cli, saved)).planId
  const bought =
    open === null
      ? await extension(cli, name, { saved, planId: await planOf(), caller })
      : await resume(cli, name, caller)
  const now = loadExtendable(cli, bought.name)
  if (bought.name !== name) return { replacement: now, name: bought.name }
  return { expiresAt: now.capability.expiresAt }
}

export function statusOf(cli: Cli, { baseUrl, capability }: SavedExtendable) {
  const mayfly = cli.mayfly(baseUrl)
  return capability.product === 'catch'
    ? mayfly.catch(capability).status()
    : mayfly.pulse(capability).status()
}
