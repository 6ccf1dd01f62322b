/** Extending what is saved, for the command and for the tool of hosts. */
import type { SavedCapability } from '../client/index.ts'
import type { Cli } from './cli.ts'
import { CliError, EXIT } from './exit.ts'
import { type Caller, extension, refuseHeld } from './purchase.ts'
import { findPurchase } from './vault/purchases.ts'
import { load } from './vault/saved.ts'

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
