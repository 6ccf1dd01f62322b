/**
 * Extending what is saved, for the command and for the tool of hosts. The key is written before the first request,
 * so that a process that was killed is continued by the next one, and nothing is paid twice.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { MayflyError, type SavedCapability } from '../client/index.ts'
import { parseJson } from '../lib/json.ts'
import type { PlanId } from '../lib/product-names.ts'
import type { Cli } from './cli.ts'
import { overwrite, readIfThere, writeNew } from './data-folder.ts'
import { CliError, EXIT, endingOf } from './exit.ts'
import { withWallet } from './invoice.ts'
import { takeLock } from './lock.ts'
import { type Caller, payerOf } from './purchase.ts'
import { fileOf, findKept, findSaved, load, save, textOf } from './saved.ts'

/** An extension under way. */
export type Extending = {
  version: 1
  planId: PlanId
  idempotencyKey: string
  /** After a wallet has paid: the proof, which a replacement takes. */
  preimage?: string
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
  caller: ExtendingCaller = {},
): Promise<Done> {
  const held = heldAs(cli, name)
  const lock = takeLock(`${fileUnderWay(cli, name)}.lock`)
  if ('heldBy' in lock) {
    throw new CliError(`Process ${lock.heldBy} is extending ${name}. Wait for it.`)
  }
  try {
    // Read again under the lock: a call that came first may have moved the end.
    const { expiresAt } = heldAs(cli, name).capability
    const { endsAt = Number.POSITIVE_INFINITY } = caller
    const isMoved = Date.parse(expiresAt) > endsAt && readExtending(cli, name) === null
    return isMoved ? { expiresAt } : await extend(cli, { name, held, caller })
  } finally {
    lock.release()
  }
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

/** The extension of this name that was begun and is not finished. */
export function readExtending(cli: Pick<Cli, 'folder'>, name: string): Extending | null {
  const text = readIfThere(fileUnderWay(cli, name))
  const found = text === null ? null : (parseJson(text) as Extending | null | undefined)
  return found?.version === 1 ? found : null
}

export function statusOf(cli: Cli, { baseUrl, capability }: Held) {
  const mayfly = cli.mayfly(baseUrl)
  return capability.product === 'catch'
    ? mayfly.catch(capability).status()
    : mayfly.pulse(capability).status()
}

/** Saves the end, if it is later than the saved one, and answers the later one. */
export function keepEnd(cli: Cli, name: string, expiresAt: string): string {
  // Read again: a payment may take minutes, and the file may have new tokens meanwhile.
  const saved = findSaved(cli, name)
  // Forgotten meanwhile.
  if (saved === null) return expiresAt
  // The end of an earlier extension may be repeated after a later one.
  if (Date.parse(saved.capability.expiresAt) >= Date.parse(expiresAt)) {
    return saved.capability.expiresAt
  }
  const capability = { ...saved.capability, expiresAt }
  overwrite(fileOf(cli, name), textOf({ ...saved, capability }))
  return expiresAt
}

type Work = { name: string; held: Held; caller: Caller }

async function extend(cli: Cli, { name, held, caller }: Work): Promise<Done> {
  const before = readExtending(cli, name)
  if (before) cli.note(`Continuing the extension of ${name}, which was interrupted.`)
  const draft = before ?? (await begin(cli, name, held))
  let isBegun = before !== null
  try {
    const onProgress: NonNullable<Caller['onProgress']> = (progress) => {
      isBegun = true
      const { preimage } = progress
      if (preimage !== undefined) write(cli, name, { ...draft, preimage })
      caller.onProgress?.(progress)
    }
    const done = await pay(cli, { held, draft, caller: { ...caller, onProgress } })
    if ('expiresAt' in done) return finish(cli, name, done.expiresAt)
    const replacement = { ...held, capability: done.replacement, planId: draft.planId }
    const free = freeName(cli, name)
    save(cli, free, replacement)
    drop(cli, name)
    return { replacement, name: free }
  } catch (error) {
    if (error instanceof MayflyError && error.phrase === 'already delivered') {
      return finish(cli, name, (await statusOf(cli, held)).expiresAt)
    }
    if (isWorthless(error, isBegun)) drop(cli, name)
    else throw goOn(cli, { name, held, caller, error })
    throw error
  }
}

/** Pays or shows the invoice of the draft, or collects what was paid. */
function pay(
  cli: Cli,
  {
    held,
    draft,
    caller,
  }: {
    held: Held
    draft: Extending
    caller: Caller & Required<Pick<Caller, 'onProgress'>>
  },
) {
  const mayfly = cli.mayfly(held.baseUrl)
  const { planId, idempotencyKey, preimage } = draft
  const sold = { product: held.capability.product, planId }
  return withWallet({ ...cli, url: held.baseUrl }, async (wallet) => {
    const payer = payerOf(cli, { mayfly, wallet, sold, ...caller })
    try {
      return await mayfly.extend(held.capability, {
        ...{ planId, idempotencyKey, signal: cli.signal },
        ...(preimage === undefined ? {} : { preimage }),
        ...payer.terms,
      })
    } finally {
      payer.end()
    }
  })
}

/** Writes the key before anything is requested with it. */
async function begin(cli: Cli, name: string, held: Held): Promise<Extending> {
  const planId = held.planId ?? (await statusOf(cli, held)).planId
  const draft: Extending = { version: 1, planId, idempotencyKey: crypto.randomUUID() }
  if (writeNew(fileUnderWay(cli, name), `${JSON.stringify(draft)}\n`)) return draft
  throw new CliError(
    `${fileUnderWay(cli, name)} cannot be read. Move it to another place or restore it first.`,
  )
}

function finish(cli: Cli, name: string, expiresAt: string): Done {
  const kept = keepEnd(cli, name, expiresAt)
  drop(cli, name)
  return { expiresAt: kept }
}

/** Whether an extension that failed holds no money: then the next one begins anew. */
function isWorthless(error: unknown, isBegun: boolean): boolean {
  if (!(error instanceof MayflyError)) return error instanceof CliError && !isBegun
  if (error.phrase === 'order expired' || error.phrase === 'order refunded') return true
  return !isBegun && (error.phrase === 'price above the ceiling' || error.status >= 400)
}

function goOn(cli: Cli, { name, held, caller, error }: Work & { error: unknown }): unknown {
  const next = caller.goOn ?? `To continue: mayfly extend ${name}`
  if (cli.signal.aborted) {
    cli.warn(`Interrupted. ${next}`)
    return error
  }
  const ending = endingOf(error, held.baseUrl)
  return ending === null
    ? error
    : new CliError(`${ending.sentence} ${next}`, ending.code, { cause: error })
}

function freeName(cli: Cli, name: string): string {
  for (let number = 2; ; number++) {
    const free = `${name.slice(0, 58)}-${number}`
    if (findKept(cli, free) === null) return free
  }
}

const write = (cli: Cli, name: string, draft: Extending): void =>
  overwrite(fileUnderWay(cli, name), `${JSON.stringify(draft)}\n`)

const drop = (cli: Cli, name: string): void => rmSync(fileUnderWay(cli, name), { force: true })

const fileUnderWay = ({ folder }: Pick<Cli, 'folder'>, name: string): string =>
  join(folder, 'extensions', `${name}.json`)
