/**
 * The unfinished purchase of this tab. Its key claims the capability, so the tab stores it until the
 * capability is saved. After a reload, the same order continues.
 */
import { isPlanId, isProduct, type PlanId, type Product } from '../../lib/product-names.ts'

export type Pending = {
  /** A whisper is bought together with its bytes, on another page. */
  product: Exclude<Product, 'whisper'>
  planId: PlanId
  priceSats: number
  idempotencyKey: string
  /** The proof, once a wallet of this page has paid. It collects the order from any address. */
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

/** Starts a purchase with a new key, before the first request. */
export function beginPurchase(choice: Omit<Pending, 'idempotencyKey' | 'preimage'>): Pending {
  const pending = { ...choice, idempotencyKey: crypto.randomUUID() }
  sessionStorage.setItem(NAME, JSON.stringify(pending))
  return pending
}

/** Stores the proof of payment with the key. */
export function keepProof(preimage: string): void {
  const pending = pendingPurchase()
  if (pending) sessionStorage.setItem(NAME, JSON.stringify({ ...pending, preimage }))
}

/** Ends the purchase: its capability is saved, or there is none. */
export function endPurchase(): void {
  sessionStorage.removeItem(NAME)
}

/** Asks before the tab is closed while `isAtStake` returns true. */
export function guardTab(isAtStake: () => boolean): void {
  addEventListener('beforeunload', (event) => {
    if (isAtStake()) event.preventDefault()
  })
}
