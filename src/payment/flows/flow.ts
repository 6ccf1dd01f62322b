/** What both wallet flows share: the request that a challenge binds, and the credential for it. */
import { hash } from 'node:crypto'
import type { Product } from '../../lib/product-names.ts'

/** The digest of no body. */
export const EMPTY_SHA256 = hash('sha256', '', 'hex')

/** What a challenge binds, and its credential must match. */
export type Binding = {
  product: Product
  /** The HTTP method, upper case. */
  method: string
  /** The raw request target: path and query as received. */
  target: string
  /** Lower-case hex of the body's bytes. */
  bodySha256: string
  /**
   * A purchase of one URL: the challenge shows neither the order's id nor anything to poll. Where nothing is sold but
   * product and plan, the body counts as empty and has no digest.
   */
  isOneUrl?: true
}

/**
 * The credential of a request, checked against that request alone; no order has been looked up.
 * `verified`: we issued its challenge for this request, and its preimage opens the payment hash.
 * `mismatched`: its preimage opens the payment hash, but the credential was made for another request, so
 * anybody who has seen the preimage may have sent it. `invalid`: it proves no payment. `paymentHash` is
 * null there when the credential is unreadable or forged.
 */
export type CheckedCredential<Reason> =
  | { kind: 'none' }
  | { kind: 'invalid'; reason: Reason; paymentHash: string | null }
  | { kind: 'mismatched'; paymentHash: string }
  | { kind: 'verified'; paymentHash: string; challengeId: string }

export type CredentialStatus = CheckedCredential<unknown>['kind']

/** The payment hash that a credential names, even an invalid one; null when it names none. */
export function paymentHashIn(credential: CheckedCredential<unknown>): string | null {
  return credential.kind === 'none' ? null : credential.paymentHash
}

/** `publicUrl` is read for each challenge: the port may be chosen after the flow is created. */
export type FlowOptions = {
  /** The keys of this flow, the current one first. */
  keys: readonly [Uint8Array, ...Uint8Array[]]
  /** The origin that clients use. */
  publicUrl: () => string
}
