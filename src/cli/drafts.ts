/**
 * Purchases under way. Each is written with its key before the first request. If the command is
 * killed, the next one continues the purchase, and no second invoice is paid.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { SealedWhisper } from '../client/index.ts'
import { base64, base64Bytes, base64url } from '../lib/bytes.ts'
import { parseJson } from '../lib/json.ts'
import { isPlanId, type PlanId } from '../lib/product-names.ts'
import { beginBudget } from './budget.ts'
import type { Cli } from './cli.ts'
import { namesIn, overwrite, readIfThere, writeNew } from './data-folder.ts'
import { CliError, EXIT } from './exit.ts'
import { type Lock, takeLock } from './lock.ts'
import { draftFile, findKept, isName, type Product } from './saved.ts'

/** A purchase, and for a whisper its sealed bytes. */
export type Draft = {
  version: 1
  product: Product
  planId: PlanId
  baseUrl: string
  idempotencyKey: string
  /** After a wallet has paid: the proof, which collects the purchase from any address. */
  preimage?: string
  whisper?: { envelope: string; key: string; hasPassword: boolean } & WhisperTerms
}

export type WhisperTerms = {
  readLimit?: number
  revealAt?: string
  receipt?: true
  revealWhen?: string
}

export type OpenDraft = { name: string; draft: Draft; isTakenUp: boolean; lock: Lock }

/**
 * Opens the draft of a purchase under this name, or under the first free one. Continues an
 * interrupted draft of the same plan.
 */
export function openDraft(
  cli: Cli,
  { product, planId, name }: { product: Product; planId: PlanId; name: string | undefined },
  make: () => Draft,
): OpenDraft {
  if (name !== undefined) {
    const open = tryDraft(cli, name, make)
    if ('heldBy' in open) throw underWay(open, name)
    if (isFor(open.draft, { product, planId, baseUrl: cli.url })) return open
    open.lock.release()
    throw new CliError(
      `Another plan or product is being bought as ${name}. Choose another --name, continue it (\`mayfly list\` shows how), or give it up: mayfly forget ${name}`,
    )
  }
  const [again] = names(cli).filter((other) => {
    const draft = readDraft(cli, other)
    return (
      draft !== null && product !== 'whisper' && isFor(draft, { product, planId, baseUrl: cli.url })
    )
  })
  if (again !== undefined) {
    const open = tryDraft(cli, again, make)
    if (!('heldBy' in open)) return open
  }
  for (let number = 1; ; number++) {
    const free = `${product}-${number}`
    if (findKept(cli, free) !== null || readDraft(cli, free) !== null) continue
    const open = tryDraft(cli, free, make)
    if (!('heldBy' in open)) return open
  }
}

/** The draft with this name, for `--resume`. @throws CliError if it does not exist. */
export function resumeDraft(cli: Cli, name: string): OpenDraft {
  if (readDraft(cli, name) === null) {
    throw new CliError(
      `There is no unfinished purchase named ${name}. \`mayfly list\` shows them.`,
      EXIT.gone,
    )
  }
  const open = tryDraft(cli, name, () => {
    throw new CliError(`There is no unfinished purchase named ${name}.`, EXIT.gone)
  })
  if ('heldBy' in open) throw underWay(open, name)
  return open
}

/** @throws CliError for an unknown plan. */
export function planOf(text: string): PlanId {
  if (isPlanId(text)) return text
  throw new CliError(
    '--plan must be spark, standard or long. `mayfly catalog` shows them.',
    EXIT.usage,
  )
}

/** The names of the purchases under way. */
export const names = ({ folder }: Cli): string[] =>
  namesIn(join(folder, 'purchases'), '.json').filter(isName)

export function readDraft(cli: Cli, name: string): Draft | null {
  const text = readIfThere(draftFile(cli, name))
  const draft = text === null ? null : (parseJson(text) as Draft | null | undefined)
  return draft?.version === 1 ? draft : null
}

/** Saves the proof of payment with the key. The caller must hold the draft's lock. */
export function keepProof(cli: Cli, name: string, preimage: string): void {
  const draft = readDraft(cli, name)
  if (draft) overwrite(draftFile(cli, name), `${JSON.stringify({ ...draft, preimage })}\n`)
}

/** Deletes a draft that was saved or holds no money. The caller must hold its lock. */
export const dropDraft = (cli: Cli, name: string): void =>
  rmSync(draftFile(cli, name), { force: true })

/**
 * Deletes a draft, even a damaged one. False if it does not exist.
 * @throws CliError while a command works on it.
 */
export function forgetDraft(cli: Cli, name: string): boolean {
  if (readIfThere(draftFile(cli, name)) === null) return false
  const lock = takeLock(lockFile(cli, name))
  if ('heldBy' in lock) throw underWay(lock, name)
  try {
    dropDraft(cli, name)
    return true
  } finally {
    lock.release()
  }
}

export function sealedIn({ whisper }: Draft): SealedWhisper | null {
  if (!whisper) return null
  const [envelope, key] = [base64Bytes(whisper.envelope), base64Bytes(whisper.key)]
  return envelope && key ? { envelope, key, hasPassword: whisper.hasPassword } : null
}

export function withSealed(sealed: SealedWhisper, terms: WhisperTerms): Required<Draft>['whisper'] {
  const { envelope, key, hasPassword } = sealed
  return { envelope: base64(envelope), key: base64url(key), hasPassword, ...terms }
}

function tryDraft(cli: Cli, name: string, make: () => Draft): OpenDraft | { heldBy: string } {
  const lock = takeLock(lockFile(cli, name))
  if ('heldBy' in lock) return lock
  try {
    const found = readDraft(cli, name)
    if (found) return { name, draft: found, isTakenUp: true, lock }
    if (findKept(cli, name) !== null) {
      throw new CliError(`A capability named ${name} already exists. Choose another --name.`)
    }
    const draft = make()
    beginBudget(cli)
    if (!writeNew(draftFile(cli, name), `${JSON.stringify(draft)}\n`)) {
      throw new CliError(`${draftFile(cli, name)} cannot be read. Move it to another place first.`)
    }
    return { name, draft, isTakenUp: false, lock }
  } catch (error) {
    lock.release()
    throw error
  }
}

type Purchase = Pick<Draft, 'product' | 'planId' | 'baseUrl'>

const isFor = (draft: Draft, { product, planId, baseUrl }: Purchase): boolean =>
  draft.product === product && draft.planId === planId && draft.baseUrl === baseUrl

const underWay = ({ heldBy }: { heldBy: string }, name: string): CliError =>
  new CliError(`Process ${heldBy} is buying ${name}. Wait for it, or stop it first.`)

const lockFile = ({ folder }: Cli, name: string): string =>
  join(folder, 'purchases', `${name}.lock`)
