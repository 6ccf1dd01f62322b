/**
 * The purchase that this tab is in the middle of. Its key is what claims the capability, so it stays
 * in the tab until the capability is safe, and a reload takes the same order up again.
 */
import { isPlanId, isProduct, type PlanId, type Product } from '../../lib/product-names.ts'

export type Pending = {
  /** A whisper is bought with its bytes, on a page of its own. */
  product: Exclude<Product, 'whisper'>
  planId: PlanId
  priceSats: number
  idempotencyKey: string
  /** Once a wallet of this page has paid: the proof that collects the purchase from any address. */
  preimage?: string
}

const NAME = 'mayfly.paying'

export function pendingPurchase(): Pending | null {
  try {
    const value: Partial<Record<keyof Pending, unknown>> | null = JSON.parse(
      sessionStorage.getItem(NAME) ?? 'null',
    )
    const isWhole =
      isProduct(value?.product) &&
      value.product !== 'whisper' &&
      isPlanId(value.planId) &&
      typeof value.priceSats === 'number' &&
      typeof value.idempotencyKey === 'string' &&
      (value.preimage === undefined || typeof value.preimage === 'string')
    return isWhole ? (value as Pending) : null
  } catch {
    return null
  }
}

/** Begins with a key of its own, before anything is asked of the service. */
export function beginPurchase(choice: Omit<Pending, 'idempotencyKey' | 'preimage'>): Pending {
  const pending = { ...choice, idempotencyKey: crypto.randomUUID() }
  sessionStorage.setItem(NAME, JSON.stringify(pending))
  return pending
}

/** Keeps the proof of payment beside the key. */
export function keepProof(preimage: string): void {
  const pending = pendingPurchase()
  if (pending) sessionStorage.setItem(NAME, JSON.stringify({ ...pending, preimage }))
}

/** The purchase is over: saved by the person, or nothing to save. */
export function endPurchase(): void {
  sessionStorage.removeItem(NAME)
}

/** Asks before the tab is closed while `isAtStake` says that something would be lost. */
export function guardTab(isAtStake: () => boolean): void {
  addEventListener('beforeunload', (event) => {
    if (isAtStake()) event.preventDefault()
  })
}
