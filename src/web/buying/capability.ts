/** The text of a capability, and the one that is open in this tab. */
import {
  type AnyCapability,
  formatCapability,
  parseCapability,
  type SavedCapability,
} from '../../client/capability-file.ts'
import { download } from '../components.ts'

const OPEN = 'mayfly.open'

/** A capability of this service, and its plan if that is known. */
export type Held = Omit<SavedCapability, 'baseUrl'>

/** The open capability of a tab. It survives a reload, and is lost when the tab is closed. */
export type OpenHere = Held & {
  /** Whether the user has also saved it elsewhere. */
  isSaved: boolean
}

/** The text of a capability file. */
export function capabilityText({ capability, planId }: Held): string {
  return formatCapability({
    capability,
    baseUrl: location.origin,
    ...(planId === undefined ? {} : { planId }),
  })
}

/** Downloads the capability file. */
export function downloadCapability(held: Held): void {
  const { product, publicId } = held.capability
  const name = `mayfly-${product}-${publicId.slice(-6)}.json`
  download(name, capabilityText(held), 'application/json')
}

/** Opens a capability in this tab: the page of its product shows it, also after a reload. */
export function openHere({ isSaved, ...held }: OpenHere): void {
  const open = { text: capabilityText(held), isSaved }
  sessionStorage.setItem(`${OPEN}.${held.capability.product}`, JSON.stringify(open))
}

/** The open capability of this product in this tab, or null. */
export function whatIsOpen(product: AnyCapability['product']): OpenHere | null {
  try {
    const { text, isSaved }: { text?: unknown; isSaved?: unknown } = JSON.parse(
      sessionStorage.getItem(`${OPEN}.${product}`) ?? '{}',
    )
    const saved = typeof text === 'string' ? parseCapability(text) : null
    return saved && { ...saved, isSaved: isSaved === true }
  } catch {
    return null
  }
}

/** Closes the open capability of this product. */
export function closeHere(product: AnyCapability['product']): void {
  sessionStorage.removeItem(`${OPEN}.${product}`)
}
