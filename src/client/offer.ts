/** The offer of a 402 answer, and whether its quote, invoice and challenge agree. */

import { decodeInvoice, InvalidInvoice, type Invoice } from '../protocol/bolt11.ts'
import { MayflyError } from './errors.ts'
import type { ApiRequest, ApiResponse } from './http.ts'
import type { PaymentFlow, PaymentQuote } from './purchase.ts'

export type Offer = {
  quote: PaymentQuote
  /** Makes the `Authorization` that proves the payment. Null in the native flow, which polls. */
  authorize: ((preimage: string) => string) | null
}

export type OfferTerms = {
  request: ApiRequest
  flow: PaymentFlow
  maxSats: number
  /** Reads the challenge of a wallet flow. The native flow has none. */
  authorizer?: Authorizer | undefined
}

/** Reads the challenge of a wallet flow, and resolves to what makes its `Authorization` of a preimage. */
export type Authorizer = (
  answer: ApiResponse,
  asked: { request: ApiRequest; flow: Exclude<PaymentFlow, 'native'>; quote: PaymentQuote },
) => Promise<(preimage: string) => string>

/**
 * Reads and checks the offer of a 402 answer to this request.
 * @throws MayflyError `unexpected answer`, `price above the ceiling` or `invoice disagrees`.
 */
export async function readOffer(
  answer: ApiResponse,
  { request, flow, maxSats, authorizer }: OfferTerms,
): Promise<Offer> {
  const quote = quoteOf(answer)
  const invoice = invoiceOf(quote)
  // The wallet pays the invoice's amount, which may differ from the quote's.
  const priceMsat = Math.max(quote.amountSats * 1000, invoice.amountMsat)
  const isBelow = priceMsat <= maxSats * 1000
  // Written as `<=`, so that a ceiling of NaN refuses every price.
  if (!isBelow) {
    const cause = new RangeError(`${priceMsat / 1000} sat is above the ceiling of ${maxSats} sat`)
    throw new MayflyError('price above the ceiling', 0, { cause })
  }
  const agrees =
    invoice.amountMsat === quote.amountSats * 1000 &&
    invoice.paymentHash === quote.paymentHash &&
    invoice.network === quote.network &&
    invoice.expiresAt === Date.parse(quote.expiresAt)
  if (!agrees) throw disagrees()
  if (flow === 'native') return { quote, authorize: null }
  if (!authorizer) throw new Error('a wallet flow without an authorizer')
  return { quote, authorize: await authorizer(answer, { request, flow, quote }) }
}

function invoiceOf({ bolt11 }: PaymentQuote): Invoice & { amountMsat: number } {
  try {
    const invoice = decodeInvoice(bolt11)
    const { amountMsat } = invoice
    // An invoice without an amount lets its payer choose, so there is nothing to compare.
    if (amountMsat !== null) return { ...invoice, amountMsat }
  } catch (error) {
    if (!(error instanceof InvalidInvoice)) throw error
  }
  throw disagrees()
}

function quoteOf({ status, body }: ApiResponse): PaymentQuote {
  const quote = (typeof body === 'object' ? body : null) as Partial<PaymentQuote> | null
  const { orderId, bolt11, paymentHash, expiresAt, amountSats } = quote ?? {}
  const isQuote =
    [orderId, bolt11, paymentHash, expiresAt].every((text) => typeof text === 'string') &&
    Number.isSafeInteger(amountSats) &&
    Number(amountSats) > 0
  if (!isQuote) throw new MayflyError('unexpected answer', status)
  return quote as PaymentQuote
}

/** Compares invoices. They are bech32, which is case-insensitive. */
export const isSameInvoice = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

/** The parts of an offer contradict each other, so nothing is paid. */
export const disagrees = (): MayflyError => new MayflyError('invoice disagrees', 0)
