/**
 * The unfinished purchases of this tab, the latest first. A purchase's key claims the capability, so the tab stores
 * it until the capability is saved. After a reload, the same order continues. Several are possible, since a
 * second purchase must not lose the key of the first.
 */
import { isPlanId, isProduct } from '../../lib/product-names.ts'
import type { Terms } from './terms.ts'

export type Pending = Terms & {
  /** A whisper is bought together with its bytes, on another page. */
  product: 'catch' | 'pulse'
  idempotencyKey: string
  /** The proof, once a wallet of this page has paid. It collects the order from any address. */
  preimage?: string
  /** Whether the capability was delivered, but is not saved yet. */
  isPaid?: boolean
}

const NAME = 'mayfly.paying'
/** More than one tab ever needs. Beyond, the oldest unpaid ones are dropped. */
const MAX_PENDING = 10

export function pendingPurchases(): Pending[] {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(NAME) ?? '[]')
    // An earlier version stored one purchase alone.
    return (Array.isArray(value) ? value : [value]).flatMap(pendingIn)
  } catch {
    return []
  }
}

/** Starts a purchase with a new key, before the first request. */
export function beginPurchase(terms: Terms & { product: Pending['product'] }): Pending {
  const pending = { ...terms, idempotencyKey: crypto.randomUUID() }
  const others = pendingPurchases()
  const isKept = ({ isPaid, preimage }: Pending, at: number) =>
    at < MAX_PENDING - 1 || isPaid === true || preimage !== undefined
  save([pending, ...others.filter(isKept)])
  return pending
}

/** Stores more about a purchase, such as the proof of payment, with its key. */
export function notePurchase(
  { idempotencyKey }: Pending,
  more: Pick<Pending, 'preimage' | 'isPaid'>,
): void {
  save(
    pendingPurchases().map((each) =>
      each.idempotencyKey === idempotencyKey ? { ...each, ...more } : each,
    ),
  )
}

/** Ends a purchase: its capability is saved, or there is none. */
export function endPurchase({ idempotencyKey }: Pending): void {
  save(pendingPurchases().filter((each) => each.idempotencyKey !== idempotencyKey))
}

function save(pending: Pending[]): void {
  if (pending.length === 0) sessionStorage.removeItem(NAME)
  else sessionStorage.setItem(NAME, JSON.stringify(pending))
}

function pendingIn(value: unknown): Pending[] {
  if (typeof value !== 'object' || value === null) return []
  const stored = value as Partial<Record<keyof Pending, unknown>>
  const { product, planId, priceSats, idempotencyKey, preimage, lifetime, limits } = stored
  if (!isProduct(product) || product === 'whisper' || !isPlanId(planId)) return []
  if (typeof priceSats !== 'number' || typeof idempotencyKey !== 'string') return []
  return [
    {
      product,
      planId,
      priceSats,
      idempotencyKey,
      lifetime: textOr(lifetime, ''),
      limits: textOr(limits, ''),
      isPaid: stored.isPaid === true,
      ...(typeof preimage === 'string' ? { preimage } : {}),
    },
  ]
}

const textOr = (value: unknown, or: string): string => (typeof value === 'string' ? value : or)
