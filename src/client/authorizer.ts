/**
 * The challenges of the wallet flows, Payment and L402. Apart from the offer, since the pages know only the native
 * flow and should not load these.
 */
import { utf8 } from '../lib/bytes.ts'
import { parseChallenges } from '../protocol/auth-params.ts'
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
import type { ApiRequest } from './http.ts'
import { type Authorizer, disagrees, isSameInvoice } from './offer.ts'
import type { PaymentQuote } from './purchase.ts'

/** @throws MayflyError `unexpected answer` or `invoice disagrees`. */
export const authorizer: Authorizer = async ({ headers, status }, { request, flow, quote }) => {
  const challenges = parseChallenges([headers.get('www-authenticate') ?? '']) ?? []
  if (flow === 'l402') {
    const [challenge, ...more] = l402Challenges(challenges)
    if (!challenge || more.length > 0) throw new MayflyError('unexpected answer', status)
    if (!isSameInvoice(challenge.invoice, quote.bolt11)) throw disagrees()
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
  if (!isSameInvoice(invoice, quote.bolt11)) return false
  if (network !== quote.network || paymentHash !== quote.paymentHash) return false
  if (challengeExpiresAt(challenge) !== Date.parse(quote.expiresAt)) return false
  if (challenge.digest === undefined) return true
  const bytes = typeof body === 'string' ? utf8(body) : body
  const sha256 = await crypto.subtle.digest('SHA-256', bytes)
  return challenge.digest === contentDigest(new Uint8Array(sha256))
}
