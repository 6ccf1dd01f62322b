/** Extending what was bought, before it ends: a purchase that adds the time and the limits of its plan. */
import type { CatchCapability } from '../catch/schema.ts'
import { isObject } from '../lib/json.ts'
import type { PlanId } from '../lib/product-names.ts'
import { extensionRequest } from '../protocol/purchase-requests.ts'
import type { PulseCapability } from '../pulse/schema.ts'
import { isDateTime } from './capability-file.ts'
import { MayflyError } from './errors.ts'
import type { Order } from './record.ts'

/** The part of a capability that extending it needs. */
export type Extendable = Pick<
  CatchCapability | PulseCapability,
  'product' | 'publicId' | 'ownerToken'
>

/**
 * What an extension has bought: the new end, RFC 3339, or a new capability in place of one that ended before the
 * payment. That one is delivered once: save it before anything else.
 *
 * ```ts
 * const show = (done: Extension) => console.log('replacement' in done ? 'save it' : done.expiresAt)
 * ```
 */
export type Extension = { expiresAt: string } | { replacement: CatchCapability | PulseCapability }

/** The request that orders an extension. */
export function extensionOrder(
  { product, publicId, ownerToken }: Extendable,
  planId: PlanId,
): Order {
  const request = extensionRequest({ product, publicId, planId }, ownerToken)
  return { product, planId, extends: publicId, ...request }
}

/** What a paid order has answered. @throws MayflyError `unexpected answer`. */
export function extensionOf(bought: unknown): Extension {
  const end = newEndOf(bought)
  if (end !== null) return end
  if (isObject(bought) && (bought.product === 'catch' || bought.product === 'pulse')) {
    return { replacement: bought as CatchCapability | PulseCapability }
  }
  throw new MayflyError('unexpected answer', 200)
}

/** The new end of what was extended, or null if it was sold anew. @throws MayflyError `unexpected answer`. */
export function newEndOf(bought: unknown): { expiresAt: string } | null {
  if (!isObject(bought) || bought.extended !== true) return null
  const { expiresAt } = bought
  if (typeof expiresAt === 'string' && isDateTime(expiresAt)) return { expiresAt }
  throw new MayflyError('unexpected answer', 200)
}
