/** The offer of a 402 answer, and whether its quote, invoice and challenge agree. */

import { utf8 } from '../lib/bytes.ts'
import { parseChallenges } from '../protocol/auth-params.ts'
import { decodeInvoice, InvalidInvoice, type Invoice } from '../protocol/bolt11.ts'
import { l402Challenges, serialiseL402Credential } from '../protocol/l402.ts'
import {
  CHARGE_INTENT,
  challengeExpiresAt,
  contentDigest,
  decodeChargeRequest,
  LIGHTNING_METHOD,
  type PaymentChallenge,
  paymentChallenges,
  serialisePaymentCredential,
} from '../protocol/payment-auth.ts'
import { MayflyError } from './errors.ts'
import type { ApiRequest, ApiResponse } from './http.ts'
import type { PaymentFlow, PaymentQuote } from './purchase.ts'

export type Offer = {
  quote: PaymentQuote
  /** Makes the `Authorization` that proves the payment. Null in the native flow, which polls. */
  authorize: ((preimage: string) => string) | null
}

/**
 * Reads and checks the offer of a 402 answer to this request.
 * @throws MayflyError `unexpected answer`, `price above the ceiling` or `invoice disagrees`.
 */
export async function readOffer(
  answer: ApiResponse,
  { request, flow, maxSats }: { request: ApiRequest; flow: PaymentFlow; maxSats: number },
): Promise<Offer> {
  const quote = quoteOf(answer)
  const invoice = invoiceOf(quote)
  // The wallet pays the invoice's amount, which may differ from the quote's.
  const isBelow = Math.max(quote.amountSats * 1000, invoice.amountMsat) <= maxSats * 1000
  // Written as `<=`, so that a ceiling of NaN refuses every price.
  if (!isBelow) {
    throw new MayflyError('price above the ceiling', 0)
  }
  const agrees =
    invoice.amountMsat === quote.amountSats * 1000 &&
    invoice.paymentHash === quote.paymentHash &&
    invoice.network === quote.network &&
    invoice.expiresAt === Date.parse(quote.expiresAt)
  if (!agrees) throw disagrees()
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

async function authorizer(
  { headers, status }: ApiResponse,
  { request, flow, quote }: { request: ApiRequest; flow: PaymentFlow; quote: PaymentQuote },
): Promise<Offer['authorize']> {
  if (flow === 'native') return null
  const challenges = parseChallenges([headers.get('www-authenticate') ?? '']) ?? []
  if (flow === 'l402') {
    const [challenge, ...more] = l402Challenges(challenges)
    if (!challenge || more.length > 0) throw new MayflyError('unexpected answer', status)
    if (!isSame(challenge.invoice, quote.bolt11)) throw disagrees()
    return (preimage) => serialiseL402Credential({ ...challenge, preimage })
  }
  const [challenge, ...more] = paymentChallenges(challenges).filter(
    ({ method, intent }) => method === LIGHTNING_METHOD && intent === CHARGE_INTENT,
  )
  if (!challenge || more.length > 0) throw new MayflyError('unexpected answer', status)
  if (!(await asksFor(challenge, quote, request))) throw disagrees()
  return (preimage) => serialisePaymentCredential({ challenge, payload: { preimage } })
}

/** Whether a challenge matches the quote and the request's body (draft-lightning-charge-00). */
async function asksFor(
  challenge: PaymentChallenge,
  quote: PaymentQuote,
  { body = '' }: ApiRequest,
): Promise<boolean> {
  const charge = decodeChargeRequest(challenge.request)
  if (charge === null || charge.amount !== String(quote.amountSats)) return false
  const { invoice, network, paymentHash = quote.paymentHash } = charge.methodDetails
  if (!isSame(invoice, quote.bolt11)) return false
  if (network !== quote.network || paymentHash !== quote.paymentHash) return false
  if (challengeExpiresAt(challenge) !== Date.parse(quote.expiresAt)) return false
  if (challenge.digest === undefined) return true
  const bytes = typeof body === 'string' ? utf8(body) : body
  const sha256 = await crypto.subtle.digest('SHA-256', bytes)
  return challenge.digest === contentDigest(new Uint8Array(sha256))
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
const isSame = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

const disagrees = (): MayflyError => new MayflyError('invoice disagrees', 0)
