/**
 * What a buyer is asked to pay. In a file of its own, because the SDK shares the type: a browser's project, which
 * has no types of Node, checks every file that this one imports.
 */
import type { PlanId, Product } from '../lib/product-names.ts'
import type { Network } from '../lightning/lightning.ts'

/** An order with its invoice. `expiresAt` is the end of the quote: a whole second, in unix milliseconds. */
export type Quote = {
  orderId: string
  product: Product
  planId: PlanId
  amountSats: number
  bolt11: string
  paymentHash: string
  expiresAt: number
  network: Network
  /** The invoice's text: product and plan. */
  memo: string
  /** How long the capability will live. */
  durationSeconds: number
  /** A stranger may know the key: once paid, the order is delivered only to proof of payment. */
  proofRequired?: true
}
