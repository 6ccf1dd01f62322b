/** What payment asks of a product. Payment knows no product; serve.ts hands these in. */
import type { Statement } from '../db/db.ts'
import type { Json } from '../lib/jcs.ts'
import type { PlanId, Product } from '../lib/product-names.ts'

/** The part of a plan that payment reads; a product's plan has more, and payment keeps it all. */
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
   * The statements that join the settling unit. They must not fail for want of anything: what
   * they need was reserved at quote time. One that is refused makes the order `paid_unfulfilled`.
   */
  provision(grant: Grant): Statement[]
  /** What the buyer gets, `resource` of SettledPayment. The same bytes for the same grant. */
  capability(grant: Grant): Json
  /**
   * The statements that let go of what an offer reserved. They join the unit that ends an unpaid
   * order, whichever that is, and do nothing where nothing is reserved.
   */
  release?(orderId: string): Statement[]
  /**
   * Reserves again what was let go of, out of the same body and whether there is room or not, since
   * the buyer has proven to have paid. Does nothing where it is still reserved. Joins the settling
   * unit before `provision`.
   */
  restore?(order: { orderId: string; clientNetwork: string; body: Uint8Array }): Statement[]
}

/** The products that this server sells. */
export type Products = Partial<Record<Product, Provisioning>>

/** @throws Error for an order of a product that is gone. */
export function provisioningOf(products: Products, product: Product): Provisioning {
  const provisioning = products[product]
  if (!provisioning) throw new Error(`no product provisions ${product}`)
  return provisioning
}
