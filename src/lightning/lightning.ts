/**
 * The Lightning port: everything that Mayfly needs of a node, and nothing a backend cannot do.
 *
 * An invoice is money that may already be under way, so a backend that is unsure throws; the states
 * it does report are final, except `open` and a `dead` that is a guess.
 */

import type { Statement } from '../db/db.ts'

/** The networks that the interface knows. A node on another one is refused at start-up. */
export type Network = 'mainnet' | 'regtest' | 'signet'

/** A held HTLC is `open`. */
export type InvoiceState = 'open' | 'settled' | 'dead'

/**
 * The state of an invoice at its node. `dead` is final where the node itself says that the invoice can
 * never be settled any more. Some nodes have no such state: there it is a guess by the clock, long after
 * the expiry, and the same invoice may turn out to be settled.
 */
export type InvoiceStatus = { state: 'open' | 'settled' } | { state: 'dead'; isFinal: boolean }

export type Lightning = {
  /** What the node reports of itself. Throws when it cannot be reached or refuses the call. */
  info(): Promise<NodeInfo>

  /** Makes one invoice for exactly `amountMsat`. Throws when the node did not make it. */
  createInvoice(request: InvoiceRequest): Promise<{ bolt11: string; paymentHash: string }>

  /**
   * The same for a node inside this process, without waiting. The invoice exists once `statements`
   * are committed, in the unit that opens its order. Throws if it cannot make the invoice.
   */
  signInvoice?(request: InvoiceRequest): SignedInvoice

  /** The state of one invoice. Throws `UnknownInvoice` for a hash the node has never seen. */
  lookupInvoice(paymentHash: string): Promise<InvoiceStatus>

  /**
   * Calls `onSettled` for each settlement the node reports, until `signal` aborts. A hint that
   * makes things fast: events may come late, twice or never, and each invoice is looked up.
   */
  watch(onSettled: (paymentHash: string) => void, signal: AbortSignal): Promise<void>
}

/**
 * `nodeId` is the public key that signs the node's invoices, in hex. It is null where a backend
 * cannot tell one set of books from another by it, as with accounts that share a node.
 */
export type NodeInfo = { network: Network; synced: boolean; nodeId: string | null }

/** `expirySeconds` counts from now; `memo` is at most 639 bytes (BOLT 11 `d`). */
export type InvoiceRequest = { amountMsat: number; memo: string; expirySeconds: number }

/** `expiresAt` is a whole second, in unix milliseconds. */
export type SignedInvoice = {
  bolt11: string
  paymentHash: string
  network: Network
  expiresAt: number
  statements: Statement[]
}

/** The node does not know this payment hash: a restored or a wrong node, never a dead invoice. */
export class UnknownInvoice extends Error {
  override name = 'UnknownInvoice'
  constructor() {
    super('the Lightning node does not know this payment hash')
  }
}
