/** The native flow: a JSON quote, then polling. */
import { rfc3339Seconds } from '../../lib/clock.ts'
import type { Quote } from '../quote.ts'

/** PaymentQuote of the interface, the body of a native 402. */
export function renderQuote(quote: Quote) {
  return {
    orderId: quote.orderId,
    product: quote.product,
    planId: quote.planId,
    amountSats: quote.amountSats,
    // l402kit and others read the price by this name, and hold it against their user's ceiling.
    priceSats: quote.amountSats,
    bolt11: quote.bolt11,
    paymentHash: quote.paymentHash,
    expiresAt: rfc3339Seconds(quote.expiresAt),
    network: quote.network,
    ...proofOf(quote),
  }
}

/** What a purchase of one URL costs: nothing to poll. */
export function renderOffer({
  product,
  planId,
  amountSats,
  paymentHash,
  expiresAt,
  network,
}: Quote) {
  return {
    product,
    planId,
    amountSats,
    priceSats: amountSats,
    paymentHash,
    expiresAt: rfc3339Seconds(expiresAt),
    network,
  }
}

/** The body of a poll that finds the order not settled yet. */
export function renderPending(quote: Quote) {
  return {
    settled: false as const,
    expiresAt: rfc3339Seconds(quote.expiresAt),
    ...proofOf(quote),
  }
}

const proofOf = ({ proofRequired }: Quote) => (proofRequired ? { proofRequired } : {})
