/** The state of an invoice on nodes that have no final state for one that was not paid. */
import type { InvoiceStatus } from '../lightning.ts'
import { readableInvoice } from './check-invoice.ts'

/** This long after its expiry an HTLC of an invoice is hardly still under way. */
const GRACE_MS = 10 * 60_000

/** `open` until long after the expiry, and a `dead` that is a guess from then on. */
export function unpaidStatus(expiresAt: number | undefined, now: number): InvoiceStatus {
  return expiresAt !== undefined && now > expiresAt + GRACE_MS
    ? { state: 'dead', isFinal: false }
    : { state: 'open' }
}

/** When an invoice expires, by its own words; undefined where it is missing or unreadable. */
export function expiryOf(bolt11: unknown): number | undefined {
  return typeof bolt11 === 'string' ? readableInvoice(bolt11)?.expiresAt : undefined
}
