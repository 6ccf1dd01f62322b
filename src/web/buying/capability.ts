/** Capabilities that the pages store in this browser, only when the user asks for it. */
import {
  type AnyCapability,
  formatCapability,
  parseCapability,
  type SavedCapability,
} from '../../client/capability-file.ts'

const KEPT = 'mayfly.kept'
const OPEN = 'mayfly.open'
/** Expired capabilities are deleted this much later, since this computer's clock may be wrong. */
const ENDED_MS = 24 * 60 * 60 * 1000

/** The open capability of a tab. It survives a reload, and is lost when the tab is closed. */
export type OpenHere = {
  capability: AnyCapability
  /** Whether the user has also saved it elsewhere. */
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

/** The stored capabilities that did not expire long ago, the latest first. */
export function keptCapabilities(): AnyCapability[] {
  return savedUnder(KEPT)
    .map(({ capability }) => capability)
    .filter(({ expiresAt }) => Date.parse(expiresAt) + ENDED_MS > Date.now())
}

/** Stores a capability in this browser. Call it only at the user's click. */
export function keep(capability: AnyCapability): void {
  const others = keptCapabilities().filter(({ publicId }) => publicId !== capability.publicId)
  save([capability, ...others])
}

/** Deletes a stored capability. */
export function forget(publicId: string): void {
  save(keptCapabilities().filter((some) => some.publicId !== publicId))
}

/** Opens a capability in this tab: the page of its product shows it, also after a reload. */
export function openHere({ capability, isSaved }: OpenHere): void {
  const open = { text: capabilityText(capability), isSaved }
  sessionStorage.setItem(`${OPEN}.${capability.product}`, JSON.stringify(open))
}

/** The open capability of this product in this tab, or null. */
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

/** Closes the open capability of this product. */
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
