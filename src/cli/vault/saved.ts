/** The user's capabilities by name, in the vault. */
import {
  formatKept,
  isPingOnly,
  type Kept,
  parseKept,
  type SavedPing,
} from '../../client/capability-file.ts'
import type { AnyCapability, SavedCapability } from '../../client/index.ts'
import { isId } from '../../lib/ids.ts'
import { isProduct, PRODUCT_NAMES } from '../../lib/product-names.ts'
import type { Cli } from '../cli.ts'
import { CliError, misuse, notThere } from '../exit.ts'
import { forgetListening } from './listening.ts'
import { continuing, nameSaved, openPurchase } from './purchases.ts'
import { change, inVault, type Place, rowsIn, VaultError, vaultFile } from './vault.ts'

export type Product = AnyCapability['product']

const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/

/** @throws CliError for an invalid name. */
export function checkName(name: string): string {
  // An id is in the addresses that the user sees, so it is easily taken for the name.
  if (PRODUCT_NAMES.some((product) => isId(product, name))) {
    throw misuse(
      `${name} is an id. This takes the name that it is saved under: \`mayfly list\` shows the names.`,
    )
  }
  if (isName(name)) return name
  throw misuse(
    'A name has at most 63 characters: lower-case letters, digits, dots, dashes and underscores.',
  )
}

export const isName = (text: string): boolean => NAME.test(text)

/** Saves a new capability. Never overwrites one. @throws CliError if the name is taken. */
export function save(place: Place, name: string, saved: Kept): void {
  const insert = 'insert into capability (name, text) values ($name, $text) on conflict do nothing'
  const row = { name: checkName(name), text: textOf(saved) }
  if (change(place, insert, row) === 0) throw nameSaved(name)
}

/** Saves what a capability has become: what `become` makes of it now. Null if it is saved no more. */
export function saveAgain<T extends Kept>(
  place: Place,
  name: string,
  become: (saved: T) => T,
): T | null {
  return inVault(place, (db) => {
    const saved = findKept({ ...place, db }, name)
    if (saved === null) return null
    const changed = become(saved as T)
    // What it was before, such as used up, it may be no more.
    const update = 'update capability set text = $text, state = null where name = $name'
    change({ ...place, db }, update, { name, text: textOf(changed) })
    return changed
  })
}

/**
 * Saves a new token of this capability in place of the one before. That one may stop at once, so nobody asks for a new
 * one before this was called without it, and the vault has taken that.
 */
export function saveToken(
  place: Place,
  name: string,
  { publicId, ...token }: { publicId: string; [token: string]: string | undefined },
): void {
  const isThere = Object.values(token).some((value) => value !== undefined)
  saveAgain<Kept>(place, name, (kept) =>
    isThere && kept.capability.publicId === publicId
      ? ({ ...kept, capability: { ...kept.capability, ...token } } as Kept)
      : kept,
  )
}

/** What the service said of a thing last, and when, in unix milliseconds. */
export type Said = { state: string; at: number }

/** Remembers it for `mayfly list`. Where the vault can only be read, it is forgotten. */
export function rememberState(place: Place & { now(): number }, name: string, state: string): void {
  const update = 'update capability set state = $state, said_at = $at where name = $name'
  try {
    change(place, update, { name, state, at: place.now() })
  } catch (error) {
    if (!(error instanceof VaultError)) throw error
  }
}

/** The text of a file. @throws CliError if the service's answer is not a capability. */
export function textOf(saved: Kept): string {
  const { product } = saved.capability
  const text = isProduct(product) ? formatKept(saved) : ''
  if (parseKept(text) !== null) return text
  throw new CliError('The service answered with a capability that this version does not know.')
}

/** All that is saved, by name. Null for what is damaged. */
export const allKept = (place: Place): { name: string; kept: Kept | null; said: Said | null }[] =>
  rowsIn(place, 'select * from capability order by name').map(
    ({ name, text, state, said_at: at }) => ({
      name: String(name),
      kept: parseKept(String(text)),
      said: state === null ? null : { state: String(state), at: Number(at) },
    }),
  )

export const isSaved = (place: Place, name: string): boolean => textOfName(place, name) !== null

/** What is saved under this name, or null. @throws CliError if it is damaged. */
export function findKept(place: Place, name: string): Kept | null {
  checkName(name)
  const text = textOfName(place, name)
  if (text === null) return null
  const kept = parseKept(text)
  if (kept) return kept
  throw new CliError(
    `What ${vaultFile(place.folder)} has as ${name} is not a capability. To remove it: mayfly forget ${name} --yes`,
  )
}

function textOfName(place: Place, name: string): string | null {
  const [row] = rowsIn(place, 'select text from capability where name = $name', { name })
  return row === undefined ? null : String(row.text)
}

/** The capability with this name, or null. @throws CliError if it is unreadable, or for pings only. */
export function findSaved(place: Place, name: string): SavedCapability | null {
  const kept = findKept(place, name)
  if (kept === null || !isPingOnly(kept)) return kept
  throw misuse(`${name} is saved here for pings only. Run this where its owner's token is.`)
}

/** What is saved under this name. @throws CliError if it does not exist. */
export function loadKept(place: Place, name: string): Kept {
  return findKept(place, name) ?? missing(place, name)
}

/** The capability with this name. @throws CliError if it does not exist, or is for pings only. */
export function load(place: Place, name: string): SavedCapability {
  return findSaved(place, name) ?? missing(place, name)
}

function missing(place: Place, name: string): never {
  const record = openPurchase(place, name)
  if (record !== null) {
    throw notThere(
      `The purchase of ${name} is not finished. To continue: ${continuing(name, record)}`,
    )
  }
  throw notThere(`Nothing is saved as ${name}. \`mayfly list\` shows what is.`)
}

/** What is kept, if it is of this product. @throws CliError for another one. */
function only<K extends Kept, P extends Product>(name: string, kept: K, wanted: P): Only<K, P> {
  const { product } = kept.capability
  if (product === wanted) return kept as Only<K, P>
  throw misuse(`${name} is ${A[product]}, and this command takes ${A[wanted]}.`)
}

type Only<K extends Kept, P> = K & { capability: Extract<K['capability'], { product: P }> }

type Opener = Place & Pick<Cli, 'mayfly'>

/** The client of what is saved; of a whisper that of its receipt. */
export function clientOf(cli: Pick<Cli, 'mayfly'>, { capability, baseUrl }: SavedCapability) {
  const mayfly = cli.mayfly(baseUrl)
  if (capability.product === 'catch') return mayfly.catch(capability)
  if (capability.product === 'pulse') return mayfly.pulse(capability)
  return mayfly.whisperReceipt(capability)
}

/** The inbox with this name, its service, and the client of it. */
export function loadCatch(cli: Opener, name: string) {
  const saved = only(name, load(cli, name), 'catch')
  return { ...saved, inbox: cli.mayfly(saved.baseUrl).catch(saved.capability) }
}

/** The monitor with this name, its service, and the client of it. */
export function loadPulse(cli: Opener, name: string) {
  const saved = only(name, load(cli, name), 'pulse')
  return { ...saved, monitor: cli.mayfly(saved.baseUrl).pulse(saved.capability) }
}

/** An inbox or a monitor, as it is saved. */
export type SavedExtendable = SavedCapability & {
  capability: Extract<AnyCapability, { ownerToken: string }>
}

/** What can be extended, with this name. @throws CliError for a whisper. */
export function loadExtendable(place: Place, name: string): SavedExtendable {
  const saved = load(place, name)
  const { capability } = saved
  if (capability.product !== 'whisper') return { ...saved, capability }
  throw misuse(`${name} is a whisper, which cannot be extended.`)
}

/** What pings the monitor with this name, and its service. Its owner's token may be elsewhere. */
export const loadPing = (place: Place, name: string): SavedPing =>
  only(name, loadKept(place, name), 'pulse')

/** @throws CliError for a whisper that was bought without a receipt. */
export function checkReceipt(name: string, capability: AnyCapability): void {
  if (capability.product !== 'whisper' || capability.receiptToken !== undefined) return
  throw misuse(
    `${name} was bought without a receipt. Buy the next one with: mayfly whisper send --receipt`,
  )
}

/** Removes what is saved under this name, even if it is damaged. */
export function forget(place: Place, name: string): void {
  inVault(place, (db) => {
    const here = { ...place, db }
    const { publicId = '' } = parseKept(textOfName(here, name) ?? '')?.capability ?? {}
    forgetListening(here, publicId)
    change(here, 'delete from capability where name = $name', { name })
  })
}

/** The secret members of a capability. */
const SECRETS = new Set([
  'ownerToken',
  'ingestToken',
  'readToken',
  'receiptToken',
  'pingToken',
  'code',
])

/** The capability without its secrets. */
export function publicPart(capability: Kept['capability']): Record<string, string> {
  return Object.fromEntries(Object.entries(capability).filter(([field]) => !SECRETS.has(field)))
}

/** What each product sells, as it stands in a sentence. */
export const A: Record<Product, string> = {
  catch: 'an inbox',
  pulse: 'a monitor',
  whisper: 'a whisper',
}
