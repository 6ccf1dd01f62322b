/** `mayfly extend`, and the same for the tool of hosts: buys the plan of what is saved once more, before it ends. */
import type { Command } from 'commander'
import type { SavedCapability } from '../client/index.ts'
import { type Cli, client } from './cli.ts'
import { CliError, EXIT } from './exit.ts'
import { type Caller, extension, refuseHeld, savedAs } from './purchase.ts'
import { away, examples } from './text.ts'
import { findPurchase } from './vault/purchases.ts'
import { checkName, load } from './vault/saved.ts'

export function addExtend(program: Command): void {
  program
    .command('extend')
    .description('buy the plan of an inbox or a monitor once more, before it ends')
    .argument('<name>', 'its name')
    .addHelpText(
      'after',
      examples(
        'mayfly extend hooks                     shows an invoice and waits for the payment',
        'MAYFLY_WALLET_URL=simulator: mayfly extend hooks',
      ),
    )
    .action(
      client(async (cli, _options, [given]) => {
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
      }),
    )
}

/** What can be extended, as it is saved. */
export type Held = SavedCapability & {
  capability: Extract<SavedCapability['capability'], { ownerToken: string }>
}

/** The new end, or what was sold in place of one that had ended, and the name under which that is saved. */
export type Done = { expiresAt: string } | { replacement: Held; name: string }

/** A caller that repeats its request says from which end it counts: what lasts longer already is not extended. */
export type ExtendingCaller = Caller & { endsAt?: number }

/** Extends what is saved under this name, or continues what was interrupted. @throws CliError */
export async function extendSaved(
  cli: Cli,
  name: string,
  { endsAt = Number.POSITIVE_INFINITY, ...caller }: ExtendingCaller = {},
): Promise<Done> {
  const held = heldAs(cli, name)
  const open = findPurchase(cli, name)
  if (open !== null) refuseHeld(open)
  const record = open?.record ?? null
  const { expiresAt } = held.capability
  if (Date.parse(expiresAt) > endsAt && record === null) return { expiresAt }
  if (record !== null) cli.note(`Continuing the extension of ${name}, which was interrupted.`)
  const planId = record?.planId ?? held.planId ?? (await statusOf(cli, held)).planId
  const { name: as, done } = await extension(cli, { name, held, planId, caller })
  return as === name
    ? { expiresAt: heldAs(cli, name).capability.expiresAt }
    : replaced(cli, as, done)
}

function replaced(cli: Cli, name: string, done: object): Done {
  if (!('replacement' in done)) return { expiresAt: heldAs(cli, name).capability.expiresAt }
  return { replacement: heldAs(cli, name), name }
}

/** The capability, if it can be extended. @throws CliError */
export function heldAs(cli: Pick<Cli, 'folder'>, name: string): Held {
  const saved = load(cli, name)
  const { capability } = saved
  if (capability.product === 'whisper') {
    throw new CliError(`${name} is a whisper, which cannot be extended.`, EXIT.usage)
  }
  return { ...saved, capability }
}

export function statusOf(cli: Cli, { baseUrl, capability }: Held) {
  const mayfly = cli.mayfly(baseUrl)
  return capability.product === 'catch'
    ? mayfly.catch(capability).status()
    : mayfly.pulse(capability).status()
}
