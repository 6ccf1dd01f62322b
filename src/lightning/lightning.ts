/**
 * The Lightning port: what Mayfly needs from a node. Every backend can do all of it.
 *
 * A payment of an invoice may already be under way, so a backend that is unsure of the state throws. The
 * states that it reports are final, except `open` and a `dead` whose `isFinal` is false.
 */

import type { Statement } from '../db/db.ts'

/** The networks of the interface. The start refuses a node on any other network. */
export type Network = 'mainnet' | 'regtest' | 'signet'

/** An invoice with a held HTLC is `open`. */
export type InvoiceState = 'open' | 'settled' | 'dead'

/**
 * The state of an invoice at its node. `dead` is final if the node says that the invoice can never be
 * settled. Some nodes have no such state. Their backend assumes it long after the expiry, and the invoice
 * may still turn out to be settled.
 */
export type InvoiceStatus = { state: 'open' | 'settled' } | { state: 'dead'; isFinal: boolean }

export type Lightning = {
  /** What the node reports about itself. Throws if it is unreachable or refuses the call. */
  info(): Promise<NodeInfo>

  /**
   * Makes one invoice for exactly `amountMsat`. It was decoded and compared with the request, because a node is a peer.
   * Throws if the node did not make it.
   */
  createInvoice(request: InvoiceRequest): Promise<MadeInvoice>

  /**
   * Makes the invoice without waiting, on a node inside this process. The invoice exists once `statements`
   * are committed, in the unit that opens its order. Throws if it cannot make the invoice.
   */
  signInvoice?(request: InvoiceRequest): SignedInvoice

  /** The state of one invoice. Throws `UnknownInvoice` for a hash the node has never seen. */
  lookupInvoice(paymentHash: string): Promise<InvoiceStatus>

  /**
   * Calls `onSettled` for each settlement that the node reports, until `signal` aborts. A report is only a
   * hint: it may come late, twice or never, so the caller looks the invoice up.
   */
  watch(onSettled: (paymentHash: string) => void, signal: AbortSignal): Promise<void>
}

/**
 * `nodeId` is the public key that signs the node's invoices, in hex. It is null if it does not identify
 * whose invoices these are, as with accounts that share a node.
 */
export type NodeInfo = { network: Network; synced: boolean; nodeId: string | null }

/** `expirySeconds` counts from now; `memo` names what is bought, in some words that every node takes. */
export type InvoiceRequest = { amountMsat: number; memo: string; expirySeconds: number }

/** `expiresAt` is a whole second, in unix milliseconds. */
export type MadeInvoice = {
  bolt11: string
  paymentHash: string
  network: Network
  expiresAt: number
}

export type SignedInvoice = MadeInvoice & { statements: Statement[] }

/** The node does not know this payment hash, because it was restored or is another node. It is no `dead`. */
export class UnknownInvoice extends Error {
  override name = 'UnknownInvoice'
  constructor() {
    super('the Lightning node does not know this payment hash')
  }
}
