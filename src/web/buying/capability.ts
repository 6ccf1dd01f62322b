/** Capabilities as these pages keep them: in this browser, and only when the person says so. */
import {
  type AnyCapability,
  formatCapability,
  parseCapability,
  type SavedCapability,
} from '../../client/capability-file.ts'

const KEPT = 'mayfly.kept'
const OPEN = 'mayfly.open'
/** The clock of this computer may be wrong, so what has ended is let go of later than that. */
const ENDED_MS = 24 * 60 * 60 * 1000

/** What a tab has open. A reload opens it again, and a tab that is closed forgets it. */
export type OpenHere = {
  capability: AnyCapability
  /** Whether the person has it elsewhere, too. */
  isSaved: boolean
}

/** The text of a capability file. */
export function capabilityText(capability: AnyCapability): string {
  return formatCapability({ capability, baseUrl: location.origin })
}

/** The name that a capability file is downloaded under. */
export function capabilityFileName({ product, publicId }: AnyCapability): string {
  return `mayfly-${product}-${publicId.slice(-6)}.json`
}

/** What is kept in this browser and has not ended long ago, the latest first. */
export function keptCapabilities(): AnyCapability[] {
  return savedUnder(KEPT)
    .map(({ capability }) => capability)
    .filter(({ expiresAt }) => Date.parse(expiresAt) + ENDED_MS > Date.now())
}

/** Keeps a capability in this browser. Only ever at the person's click. */
export function keep(capability: AnyCapability): void {
  const others = keptCapabilities().filter(({ publicId }) => publicId !== capability.publicId)
  save([capability, ...others])
}

/** Lets go of what is kept. */
export function forget(publicId: string): void {
  save(keptCapabilities().filter((some) => some.publicId !== publicId))
}

/** Has this open in this tab: the page of its product shows it, now and after a reload. */
export function openHere({ capability, isSaved }: OpenHere): void {
  const open = { text: capabilityText(capability), isSaved }
  sessionStorage.setItem(`${OPEN}.${capability.product}`, JSON.stringify(open))
}

/** What this tab has open of a product. */
export function whatIsOpen(product: AnyCapability['product']): OpenHere | null {
  try {
    const { text, isSaved }: { text?: unknown; isSaved?: unknown } = JSON.parse(
      sessionStorage.getItem(`${OPEN}.${product}`) ?? '{}',
    )
    const saved = typeof text === 'string' ? parseCapability(text) : null
    return saved && { capability: saved.capability, isSaved: isSaved === true }
  } catch {
    return null
  }
}

/** Forgets it: it was closed, or is over. */
export function closeHere(product: AnyCapability['product']): void {
  sessionStorage.removeItem(`${OPEN}.${product}`)
}

function save(capabilities: readonly AnyCapability[]): void {
  if (capabilities.length === 0) localStorage.removeItem(KEPT)
  else localStorage.setItem(KEPT, JSON.stringify(capabilities.map(capabilityText)))
}

function savedUnder(name: string): SavedCapability[] {
  try {
    const texts: unknown = JSON.parse(localStorage.getItem(name) ?? '[]')
    if (!Array.isArray(texts)) return []
    return texts
      .map((text) => (typeof text === 'string' ? parseCapability(text) : null))
      .filter((saved) => saved !== null)
  } catch {
    return []
  }
}
