/** The state of unpaid invoices, for nodes that have no final state for them. */

import { readableInvoice } from '../../protocol/bolt11.ts'
import type { InvoiceStatus } from '../lightning.ts'

/** This long after the expiry, a payment is hardly still under way. */
const GRACE_MS = 10 * 60_000

/** `open` until long after the expiry, and from then on `dead` with `isFinal` false. */
export function unpaidStatus(expiresAt: number | undefined, now: number): InvoiceStatus {
  return expiresAt !== undefined && now > expiresAt + GRACE_MS
    ? { state: 'dead', isFinal: false }
    : { state: 'open' }
}

/** When an invoice expires, in unix milliseconds. Undefined if it is missing or unreadable. */
export function expiryOf(bolt11: unknown): number | undefined {
  return typeof bolt11 === 'string' ? readableInvoice(bolt11)?.expiresAt : undefined
}
