/**
 * The keys of what was bought: as a file, open in this tab, and kept in this browser because the person asked for
 * it. A kept key leaves the browser by its person alone; what the service says about it is noted beside it.
 */
import { signal } from '@preact/signals'
import {
  type AnyCapability,
  formatCapability,
  parseCapability,
  type SavedCapability,
} from '../../client/capability-file.ts'
import { MayflyError } from '../../client/errors.ts'
import { download } from './download.ts'
import { browserStore, tabStore } from './storage.ts'
import { THINGS } from './terms.ts'

/** A key of this service, and its plan if that is known. */
export type Held = Omit<SavedCapability, 'baseUrl'>

/** The open key of a tab. It survives a reload, and is lost when the tab is closed. */
export type OpenHere<Product = unknown> = Held & {
  capability: AnyCapability & { product: Product }
  /** Whether the person has also saved it elsewhere. */
  isSaved: boolean
}

export type Kept = Held & {
  /** Its person's name for it, such as `Inbox 1`. Show it through `plainly`. */
  name: string
  /** The service has said that there is nothing for this key any more. */
  isGone: boolean
}

const KEPT = 'mayfly.kept'
const OPEN = 'mayfly.open'
/** A name has to fit into one line. */
export const MAX_NAME_CHARS = 60

/** The text of a key file. */
export function keyText({ capability, planId }: Held): string {
  return formatCapability({ capability, baseUrl: location.origin, planId })
}

/** Saves a key as a file. */
export function downloadKey(held: Held): void {
  const { product, publicId } = held.capability
  const name = `mayfly-${THINGS[product].noun}-${publicId.slice(-6)}.json`
  download(name, keyText(held), 'application/json')
}

/** Opens a key in this tab: the page of its product shows it, also after a reload. Returns whether it was stored. */
export function openHere({ isSaved, ...held }: OpenHere): boolean {
  return tabStore.write(`${OPEN}.${held.capability.product}`, { text: keyText(held), isSaved })
}

/** The open key of this product in this tab, or null. */
export function whatIsOpen<Product extends AnyCapability['product']>(
  product: Product,
): OpenHere<Product> | null {
  const { text, isSaved } = (tabStore.read(`${OPEN}.${product}`) ?? {}) as Record<string, unknown>
  const saved = typeof text === 'string' ? parseCapability(text) : null
  const here: OpenHere | null = saved && { ...saved, isSaved: isSaved === true }
  return here as OpenHere<Product> | null
}

export function closeHere(product: AnyCapability['product']): void {
  tabStore.write(`${OPEN}.${product}`, null)
}

/** What is kept here, the latest first. What reads it is drawn again when this or another tab changes it. */
export const kept = signal<readonly Kept[]>(stored().keys)

globalThis.addEventListener?.('storage', refresh)
globalThis.addEventListener?.('pageshow', refresh)

function refresh(): void {
  kept.value = stored().keys
}

export const keptOf = (publicId: string): Kept | undefined =>
  stored().keys.find(({ capability }) => capability.publicId === publicId)

/** Keeps a key. Call it only at the person's click. Returns false if this browser refuses to store it. */
export function keep({ capability, planId }: Held): boolean {
  const { publicId, product } = capability
  const others = stored().keys.filter((each) => each.capability.publicId !== publicId)
  const name = keptOf(publicId)?.name ?? freeName(product, others)
  return save([{ capability, planId, name, isGone: false }, ...others])
}

/** An empty name changes nothing. */
export function rename(publicId: string, name: string): void {
  const given = tidied(name)
  if (given !== '') change(publicId, (each) => ({ ...each, name: given }))
}

/** Removes a key, because its person said so, or because the service has destroyed what it opened. */
export function forget(publicId: string): void {
  save(stored().keys.filter(({ capability }) => capability.publicId !== publicId))
}

/** The service said when it ends: anybody with the key may have extended it. */
export function noteEnd(publicId: string, expiresAt: string): void {
  const isNoted = ({ capability, isGone }: Kept) => !isGone && capability.expiresAt === expiresAt
  change(publicId, (each) =>
    isNoted(each)
      ? null
      : { ...each, isGone: false, capability: { ...each.capability, expiresAt } },
  )
}

/** Notes it if the service said that there is nothing for this key. */
export function noteFailure(publicId: string, error: unknown): void {
  if (isGone(error)) change(publicId, (each) => (each.isGone ? null : { ...each, isGone: true }))
}

export const isGone = (error: unknown): boolean =>
  error instanceof MayflyError && (error.status === 401 || error.status === 404)

function change(publicId: string, changed: (each: Kept) => Kept | null): void {
  const { keys } = stored()
  const index = keys.findIndex(({ capability }) => capability.publicId === publicId)
  const before = keys[index]
  const after = before && changed(before)
  if (after) save(keys.with(index, after))
}

function tidied(name: string): string {
  return [...name.trim().replaceAll(/\s+/g, ' ')].slice(0, MAX_NAME_CHARS).join('')
}

/** `Inbox 1`, or the first number that no other has. */
function freeName(product: AnyCapability['product'], others: readonly Kept[]): string {
  const taken = new Set(others.map(({ name }) => name))
  const { title } = THINGS[product]
  for (let number = 1; ; number++) {
    if (!taken.has(`${title} ${number}`)) return `${title} ${number}`
  }
}

function save(keys: readonly Kept[]): boolean {
  // What this page cannot read may be another version's, and stays.
  const entries = [
    ...keys.map((each) => ({ text: keyText(each), name: each.name, isGone: each.isGone })),
    ...stored().others,
  ]
  const before = browserStore.read(KEPT)
  const isStored = browserStore.write(KEPT, entries.length === 0 ? null : entries)
  // A key that only this page holds must not be listed as kept.
  if (!isStored) browserStore.write(KEPT, before)
  refresh()
  return isStored
}

function stored(): { keys: Kept[]; others: unknown[] } {
  const entries = browserStore.read(KEPT)
  const keys: Kept[] = []
  const others: unknown[] = []
  for (const entry of Array.isArray(entries) ? entries : []) {
    const { text, name, isGone } = (entry ?? {}) as Record<string, unknown>
    const saved = typeof text === 'string' ? parseCapability(text) : null
    if (!saved) others.push(entry)
    else {
      const { capability, planId } = saved
      const given = typeof name === 'string' ? tidied(name) : ''
      const { title } = THINGS[capability.product]
      keys.push({ capability, planId, name: given || title, isGone: isGone === true })
    }
  }
  return { keys, others }
}
