/** The checks before and after a node makes an invoice, and what becomes of one that is not paid. */
import {
  decodeInvoice,
  InvalidInvoice,
  type Invoice,
  readableInvoice,
} from '../../protocol/bolt11.ts'
import type { InvoiceRequest, InvoiceStatus, MadeInvoice, Network } from '../lightning.ts'

// A quote and its invoice expire in the same second, so the node's clock must agree with ours.
const MAX_CLOCK_DIFFERENCE_MS = 120_000

/**
 * Refuses a request that a node could round, ignore or read as "any amount".
 * @throws RangeError
 */
export function checkInvoiceRequest(request: InvoiceRequest): void {
  requirePositive('amountMsat', request.amountMsat)
  requirePositive('expirySeconds', request.expirySeconds)
}

/**
 * Checks that the invoice says what was requested, in the fields that the payer's wallet reads. No payer
 * sees an invoice from a node that is broken, misconfigured or replaced.
 * @throws WrongInvoice
 */
export function checkInvoice(
  { bolt11, paymentHash }: { bolt11: string; paymentHash: string },
  { request, network, now }: { request: InvoiceRequest; network: Network; now: number },
): MadeInvoice {
  const invoice = decode(bolt11)
  if (invoice.network !== network) {
    throw new WrongInvoice(`it is for ${invoice.network}, not ${network}`)
  }
  if (invoice.amountMsat !== request.amountMsat) throw new WrongInvoice('the amount differs')
  if (invoice.paymentHash !== paymentHash) throw new WrongInvoice('the payment hash differs')
  if (invoice.expirySeconds !== request.expirySeconds) throw new WrongInvoice('the expiry differs')
  if (Math.abs(invoice.timestamp * 1000 - now) > MAX_CLOCK_DIFFERENCE_MS) {
    throw new WrongInvoice('the clocks of the node and of this machine are too far apart')
  }
  return { bolt11, paymentHash, network, expiresAt: invoice.expiresAt }
}

/** The node's invoice is not what was requested. The message quotes no part of the invoice. */
class WrongInvoice extends Error {
  override name = 'WrongInvoice'
  constructor(reason: string) {
    super(`the Lightning node made a wrong invoice: ${reason}`)
  }
}

function decode(bolt11: string): Invoice {
  try {
    return decodeInvoice(bolt11)
  } catch (error) {
    if (error instanceof InvalidInvoice) throw new WrongInvoice(error.message)
    throw error
  }
}

function requirePositive(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value <= 0) {
    throw new RangeError(`${name} must be a positive integer`)
  }
}

/** This long after the expiry, a payment is hardly still under way. */
const GRACE_MS = 10 * 60_000

/**
 * The state of an unpaid invoice of a node that has no final state for it: `open` until long after the expiry, and from
 * then on `dead` with `isFinal` false.
 */
export function unpaidStatus(expiresAt: number | undefined, now: number): InvoiceStatus {
  return expiresAt !== undefined && now > expiresAt + GRACE_MS
    ? { state: 'dead', isFinal: false }
    : { state: 'open' }
}

/** When an invoice expires, in unix milliseconds. Undefined if it is missing or unreadable. */
export function expiryOf(bolt11: unknown): number | undefined {
  return typeof bolt11 === 'string' ? readableInvoice(bolt11)?.expiresAt : undefined
}
