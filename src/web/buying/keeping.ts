/** The capabilities that are kept in this browser, only because the user asked for it. */
import {
  type AnyCapability,
  parseCapability,
  type SavedCapability,
} from '../../client/capability-file.ts'
import { capabilityText, openHere } from './capability.ts'
import { planTitle } from './terms.ts'

/** A kept inbox, monitor or receipt of a whisper, as a list shows it. */
export type KeptThing = {
  publicId: string
  product: 'catch' | 'pulse' | 'whisper'
  /** The owner's name for it, such as `Inbox 1`. Show it through `plainly` of `foreign.ts`. */
  name: string
  /** `Spark`, or an empty text if the plan is not known. */
  plan: string
  /** RFC 3339. */
  expiresAt: string
}

/** A kept capability, with the name that its owner gave it. */
export type Kept = Omit<SavedCapability, 'baseUrl'> & { name: string }

export type Keeping = Omit<SavedCapability, 'baseUrl'> & { name?: string }

const KEPT = 'mayfly.kept'
/** Expired capabilities are deleted this much later, since this computer's clock may be wrong. */
const ENDED_MS = 24 * 60 * 60 * 1000
/** A name has to fit into one line. */
export const MAX_NAME_CHARS = 60

/** What a product is called in a name, and the page that opens it. */
const KINDS = {
  catch: { noun: 'Inbox', page: '/catch' },
  whisper: { noun: 'Whisper', page: '/receipt' },
  pulse: { noun: 'Monitor', page: '/pulse' },
} as const

/** What is kept here, the latest first. Empty if there is nothing. */
export function keptThings(): KeptThing[] {
  return keptCapabilities().map(({ capability, planId, name }) => {
    const { product, publicId, expiresAt } = capability
    return { publicId, product, name, plan: planTitle(planId), expiresAt }
  })
}

/**
 * Opens a kept capability in this tab and goes to its page. Nothing of it is in the address. Returns false if it
 * is not kept any more, and then goes nowhere.
 */
export function openKept(publicId: string): boolean {
  const kept = keptCapabilities().find(({ capability }) => capability.publicId === publicId)
  if (!kept) return false
  openHere({ ...kept, isSaved: true })
  location.assign(KINDS[kept.capability.product].page)
  return true
}

/** The kept capabilities that did not expire long ago, the latest first. */
export function keptCapabilities(): Kept[] {
  return stored().filter(
    ({ capability }) => Date.parse(capability.expiresAt) + ENDED_MS > Date.now(),
  )
}

/** The name under which this is kept, or null. */
export function nameOfKept(publicId: string): string | null {
  return keptCapabilities().find(({ capability }) => capability.publicId === publicId)?.name ?? null
}

/** Keeps a capability in this browser. Call it only at the user's click. */
export function keep({ capability, planId, name }: Keeping): void {
  const { publicId, product } = capability
  const all = keptCapabilities()
  const others = all.filter((kept) => kept.capability.publicId !== publicId)
  const given = tidied(name ?? '') || nameOfKept(publicId) || freeName(product, others)
  save([{ capability, ...(planId === undefined ? {} : { planId }), name: given }, ...others])
}

/** Gives a kept capability another name. An empty one changes nothing. */
export function rename(publicId: string, name: string): void {
  const given = tidied(name)
  if (given === '') return
  save(
    keptCapabilities().map((kept) =>
      kept.capability.publicId === publicId ? { ...kept, name: given } : kept,
    ),
  )
}

/** Deletes a kept capability. */
export function forget(publicId: string): void {
  save(keptCapabilities().filter(({ capability }) => capability.publicId !== publicId))
}

function tidied(name: string): string {
  return [...name.trim().replaceAll(/\s+/g, ' ')].slice(0, MAX_NAME_CHARS).join('')
}

/** `Inbox 1`, or the first number that no other has. */
function freeName(product: AnyCapability['product'], others: Kept[]): string {
  const taken = new Set(others.map(({ name }) => name))
  const { noun } = KINDS[product]
  for (let number = 1; ; number++) {
    if (!taken.has(`${noun} ${number}`)) return `${noun} ${number}`
  }
}

function save(all: readonly Kept[]): void {
  if (all.length === 0) {
    localStorage.removeItem(KEPT)
    return
  }
  const entries = all.map((kept) => ({ text: capabilityText(kept), name: kept.name }))
  localStorage.setItem(KEPT, JSON.stringify(entries))
}

function stored(): Kept[] {
  try {
    const entries: unknown = JSON.parse(localStorage.getItem(KEPT) ?? '[]')
    return Array.isArray(entries) ? entries.flatMap(keptIn) : []
  } catch {
    return []
  }
}

/** An entry of the store. A text alone was kept before things had names. */
function keptIn(entry: unknown): Kept[] {
  const { text, name } = (typeof entry === 'string' ? { text: entry } : (entry ?? {})) as {
    text?: unknown
    name?: unknown
  }
  const saved = typeof text === 'string' ? parseCapability(text) : null
  if (!saved) return []
  const { capability, planId } = saved
  const { product, publicId } = capability
  const given = typeof name === 'string' ? tidied(name) : ''
  return [
    {
      capability,
      ...(planId === undefined ? {} : { planId }),
      name: given || `${KINDS[product].noun} …${publicId.slice(-4)}`,
    },
  ]
}
