/** Capabilities as these pages keep them: in this browser, and only when the person says so. */
import {
  type AnyCapability,
  formatCapability,
  parseCapability,
  type SavedCapability,
} from '../client/capability-file.ts'

const KEPT = 'mayfly.kept'
const HANDED_ON = 'mayfly.handed-on'

/** The text of a capability file. */
export function capabilityText(capability: AnyCapability): string {
  return formatCapability({ capability, baseUrl: location.origin })
}

/** The name that a capability file is downloaded under. */
export function capabilityFileName({ product, publicId }: AnyCapability): string {
  return `mayfly-${product}-${publicId.slice(-6)}.json`
}

/** What is kept in this browser and has not expired, the latest first. */
export function keptCapabilities(): AnyCapability[] {
  return savedUnder(KEPT)
    .map(({ capability }) => capability)
    .filter(({ expiresAt }) => Date.parse(expiresAt) > Date.now())
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

/** Hands a capability to the next page of this tab, which takes it away as it reads it. */
export function handOn(capability: AnyCapability): void {
  sessionStorage.setItem(HANDED_ON, capabilityText(capability))
}

/** What the page before has handed on, once. */
export function takeHandedOn(): AnyCapability | null {
  const text = sessionStorage.getItem(HANDED_ON)
  sessionStorage.removeItem(HANDED_ON)
  return text === null ? null : (parseCapability(text)?.capability ?? null)
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
