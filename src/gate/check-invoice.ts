/** Checks a provider's invoice before a payer sees it: it must match the quote exactly. */
import type { Network } from '../lightning/lightning.ts'
import { decodeInvoice, InvalidInvoice, type Invoice } from '../protocol/bolt11.ts'
import { payeeOf } from '../protocol/bolt11-sign.ts'
import { LnurlError } from '../protocol/lnurl.ts'

/** The provider makes a new invoice for each request. An older one may belong to another payer. */
const MAX_AGE_MS = 10 * 60 * 1000
/** A payer needs at least this long. */
const MIN_LIFE_MS = 60 * 1000
/** Payments are honoured for as long as the invoice lives, so that time needs a limit. */
const MAX_LIFE_MS = 24 * 60 * 60 * 1000

export type CheckedInvoice = {
  bolt11: string
  paymentHash: string
  /** Unix milliseconds. */
  expiresAt: number
}

/** @throws LnurlError */
export function checkInvoice(
  bolt11: string,
  expected: { network: Network; amountMsat: number; now: number },
): CheckedInvoice {
  const invoice = signed(bolt11)
  if (invoice.network !== expected.network) {
    throw new LnurlError(`the invoice is for ${invoice.network}, not ${expected.network}`)
  }
  if (invoice.amountMsat === null) throw new LnurlError('the invoice leaves the amount open')
  if (invoice.amountMsat !== expected.amountMsat)
    throw new LnurlError('the invoice is over another sum')
  if (Math.abs(invoice.timestamp * 1000 - expected.now) > MAX_AGE_MS) {
    throw new LnurlError('the invoice was not made just now')
  }
  const lifeMs = invoice.expiresAt - expected.now
  if (lifeMs < MIN_LIFE_MS) throw new LnurlError('the invoice expires too soon')
  if (lifeMs > MAX_LIFE_MS) throw new LnurlError('the invoice lives for too long')
  return {
    bolt11: invoice.bolt11,
    paymentHash: invoice.paymentHash,
    expiresAt: invoice.expiresAt,
  }
}

function signed(bolt11: string): Invoice {
  try {
    const invoice = decodeInvoice(bolt11)
    payeeOf(invoice)
    return invoice
  } catch (error) {
    if (!(error instanceof InvalidInvoice)) throw error
    throw new LnurlError(`the invoice cannot be used: ${error.message}`, { cause: error })
  }
}
