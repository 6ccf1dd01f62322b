/** What payment needs of a product. Payment knows no product by name; serve.ts passes them in. */
import type { Db, Statement } from '../db/db.ts'
import type { Json } from '../lib/jcs.ts'
import type { PlanId, Product } from '../lib/product-names.ts'

/** The part of a plan that payment reads. A product's plan has more, and payment stores all of it. */
export type PlanTerms = { priceSats: number; durationSeconds: number }

/** A settled order, from which a capability is made. Times are unix milliseconds. */
export type Grant = {
  orderId: string
  publicId: string
  planId: PlanId
  /** The snapshot taken at quote time, as the product wrote it. */
  plan: Json
  terms: Json
  /** 32 secret bytes; every token of the capability derives from them. */
  seed: Uint8Array
  settledAt: number
  expiresAt: number
}

export type Provisioning = {
  newPublicId(): string
  /**
   * The statements that join the settling unit. They need nothing that can run out: it was reserved at
   * quote time. If one is refused, the order becomes `paid_unfulfilled`.
   */
  provision(grant: Grant): Statement[]
  /** The buyer's capability, `resource` of SettledPayment. The same grant gives the same bytes. */
  capability(grant: Grant): Json
  /**
   * The statements that free what an offer reserved. They join every unit that ends an order without
   * delivering it, and do nothing if nothing is reserved.
   */
  release?(orderId: string): Statement[]
  /**
   * The statements that reserve the same body again after it was freed. They need no room, because the
   * buyer has proven the payment, and do nothing if it is still reserved. They join the settling unit
   * before `provision`.
   */
  restore?(order: { orderId: string; clientNetwork: string; body: Uint8Array }): Statement[]
  /**
   * How a capability is extended by its plan: its new end, and the statements that extend it, which join the
   * settling unit. The first of them is refused if the capability has changed since it was read, or cannot be
   * extended. Null if it cannot be: it has ended, is used up or suspended, would last too long, or would
   * be allowed too much.
   */
  extend?(db: Pick<Db, 'read'>, order: ExtensionGrant): Promise<Extension | null>
}

/** A paid extension. `now` is unix milliseconds. */
type ExtensionGrant = { publicId: string; plan: Json; now: number }

type Extension = { expiresAt: number; statements: Statement[] }

/**
 * The longest life of a capability, from any time on, and the longest duration of a plan: ten years. The year of
 * its end then has four digits, and its seconds fit into the 12 digits of a macaroon's `valid_until`.
 */
export const MAX_LIFE_SECONDS = 10 * 365 * 24 * 60 * 60

/**
 * The end of a capability once its plan is added, in unix milliseconds; null if it would last too long from now on.
 * @throws Error for a plan without a duration.
 */
export function extendedEnd(expiresAt: number, plan: PlanTerms, now: number): number | null {
  const end = expiresAt + plan.durationSeconds * 1000
  if (!Number.isSafeInteger(end))
    throw new Error('the plan of this order does not say how long it lasts')
  return end <= now + MAX_LIFE_SECONDS * 1000 ? end : null
}

/**
 * A limit of a capability once so many plans are added to it, or null from 2^53 on, where JSON and the stores' readers
 * stop being exact. The default plans come nowhere near; a short plan with large limits does, bought often enough.
 */
export function extendedLimit(limit: number, more: number, plans = 1): number | null {
  const extended = limit + more * plans
  return Number.isSafeInteger(extended) ? extended : null
}

/** The products that this server sells. */
export type Products = Partial<Record<Product, Provisioning>>

/** @throws Error for an order of a product that was removed. */
export function provisioningOf(products: Products, product: Product): Provisioning {
  const provisioning = products[product]
  if (!provisioning) throw new Error(`no product provisions ${product}`)
  return provisioning
}
