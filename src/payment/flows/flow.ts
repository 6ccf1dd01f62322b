/** What the two wallet flows have in common: a request that is bound, and a credential for it. */
import type { Product } from '../../lib/product-names.ts'

/** What a challenge binds, and a credential must come back with. */
export type Binding = {
  product: Product
  /** The HTTP method, upper case. */
  method: string
  /** The raw request target: path and query as received. */
  target: string
  /** Lower-case hex of the body's bytes. */
  bodySha256: string
}

/** The order that a genuine and paid credential belongs to. */
export type PaidOrder = { paymentHash: string; orderId?: string; planId?: string }

/**
 * What an `Authorization` header proves for this request. `bad` never was any good. `unproven` is
 * ours and comes with a preimage of something else. `misplaced` proves a payment and nothing more:
 * it was made for another request, and whoever has it may be anybody who has seen the preimage.
 */
export type Presented<Reason> =
  | { kind: 'none' }
  | { kind: 'bad'; reason: Reason }
  | { kind: 'unproven'; reason: Reason; paymentHash: string }
  | { kind: 'misplaced'; paymentHash: string }
  | { kind: 'right'; order: PaidOrder; challengeId: string }

/** The payment hash that a credential is about, whatever it is worth; null where it names none. */
export function paymentHashIn(presented: Presented<unknown>): string | null {
  switch (presented.kind) {
    case 'none':
    case 'bad':
      return null
    case 'right':
      return presented.order.paymentHash
    default:
      return presented.paymentHash
  }
}

/** Sources of what is derived or public; read when needed, since the port may be picked late. */
export type FlowOptions = {
  /** The keys of this flow, the current one first. */
  keys: readonly [Uint8Array, ...Uint8Array[]]
  /** The origin that clients use. */
  publicUrl: () => string
}
