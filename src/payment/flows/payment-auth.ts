/**
 * HTTP Payment Authentication with a Lightning charge (draft-httpauth-payment-01,
 * draft-lightning-charge-00), as a rendering of an order: nothing about a challenge is stored.
 */
import { hexBytes, utf8 } from '../../lib/bytes.ts'
import { rfc3339Seconds } from '../../lib/clock.ts'
import { serialiseChallenge } from '../../protocol/auth-params.ts'
import { hmacSha256 } from '../../protocol/hmac.ts'
import {
  CHARGE_INTENT,
  contentDigest,
  decodeChargeRequest,
  encodeChargeRequest,
  encodeReceipt,
  type IssuedChallenge,
  LIGHTNING_METHOD,
  PAYMENT_PROBLEMS,
  PAYMENT_SCHEME,
  type PaymentChallenge,
  type PaymentProblem,
  paymentChallengeField,
  paymentChallengesIn,
  readPaymentCredential,
} from '../../protocol/payment-auth.ts'
import { challengeId, isOwnChallenge } from '../../protocol/payment-challenge-id.ts'
import { provesPayment } from '../../protocol/preimage.ts'
import type { Quote } from '../quote.ts'
import { type Binding, type CheckedCredential, EMPTY_SHA256, type FlowOptions } from './flow.ts'
import { renderOffer, renderQuote } from './native.ts'

export type PaymentFlow = ReturnType<typeof createPaymentFlow>

const DETAILS: Record<PaymentProblem, string> = {
  'payment-required': 'Pay the invoice and repeat the identical request with the credential.',
  'malformed-credential': 'The Authorization header holds no readable Payment credential.',
  'invalid-challenge': 'The credential belongs to another request, or to none of ours.',
  'payment-expired': 'The challenge has expired.',
  'verification-failed': 'The preimage does not belong to the invoice.',
}

export function createPaymentFlow({ keys, publicUrl }: FlowOptions) {
  const known = { url: '', realm: '' }

  function realm(): string {
    const url = publicUrl()
    if (url !== known.url) Object.assign(known, { url, realm: new URL(url).hostname })
    return known.realm
  }

  /**
   * The drafts let the server decide how to bind a challenge to method and URL. Here the key of its HMAC
   * derives from both, so that its id is valid for this route only and no parameter has to carry the route.
   */
  const routeKeys = ({ method, target }: Binding): Uint8Array[] =>
    keys.map((key) => hmacSha256(key, utf8(`${method} ${target}`)))

  /** Whether we issued this challenge for this request. */
  function isOurs(challenge: PaymentChallenge, binding: Binding): boolean {
    // Some payers drop the digest: then the body of this request must be the one that was challenged.
    const { digest } = digestIn(binding)
    const echoed = { ...challenge, ...(challenge.digest === undefined ? { digest } : {}) }
    // We issue no description, and the HMAC does not cover one.
    if (echoed.description !== undefined || echoed.digest !== digest) return false
    return isOwnChallenge(routeKeys(binding), echoed)
  }

  return {
    /** The 402 that asks for payment or says what was wrong with the credential. */
    challenge(quote: Quote, binding: Binding, problem: PaymentProblem) {
      const request = {
        amount: String(quote.amountSats),
        currency: 'sat' as const,
        description: quote.memo,
        methodDetails: {
          invoice: quote.bolt11,
          network: quote.network,
          paymentHash: quote.paymentHash,
        },
      }
      const fields = {
        realm: realm(),
        method: LIGHTNING_METHOD,
        intent: CHARGE_INTENT,
        request: encodeChargeRequest(request),
        expires: rfc3339Seconds(quote.expiresAt),
        ...digestIn(binding),
      } as const
      const [key] = routeKeys(binding)
      const challenge: IssuedChallenge = { id: challengeId(key ?? keys[0], fields), ...fields }
      return {
        field: paymentChallengeField(challenge),
        body: {
          ...PAYMENT_PROBLEMS[problem],
          status: 402,
          detail: DETAILS[problem],
          error: problem === 'payment-required' ? 'payment required' : 'invalid payment credential',
          challengeId: challenge.id,
          challenge,
          request,
          ...(binding.isOneUrl ? renderOffer(quote) : renderQuote(quote)),
        },
      }
    },

    read(fieldLines: readonly string[], binding: Binding): CheckedCredential<PaymentProblem> {
      const reading = readPaymentCredential(fieldLines)
      if (reading === 'none') return { kind: 'none' }
      if (reading === 'malformed') {
        const genuine = paymentChallengesIn(fieldLines).find((echo) => isOurs(echo, binding))
        return invalid('malformed-credential', genuine && paymentHashOf(genuine))
      }
      const { challenge, payload } = reading
      const paymentHash = paymentHashOf(challenge)
      if (paymentHash === null) return invalid('invalid-challenge')
      const isPaid = provesPayment(payload.preimage, paymentHash)
      // The HMAC's key includes the target, so a genuine challenge for another target looks forged.
      if (!isOurs(challenge, binding)) {
        return isPaid ? { kind: 'mismatched', paymentHash } : invalid('invalid-challenge')
      }
      if (!isPaid) return invalid('verification-failed', paymentHash)
      return { kind: 'verified', paymentHash, challengeId: challenge.id }
    },

    /** The `Payment-Receipt` of a delivery: the same one for the same credential. */
    receipt: ({
      challengeId: id,
      paymentHash,
      settledAt,
    }: {
      challengeId: string
      paymentHash: string
      settledAt: number
    }): string =>
      encodeReceipt({
        challengeId: id,
        method: LIGHTNING_METHOD,
        reference: paymentHash,
        status: 'success',
        timestamp: rfc3339Seconds(settledAt),
      }),

    /** A challenge that nothing can meet: it refuses a credential for an order that is already paid. */
    bare: (): string => serialiseChallenge(PAYMENT_SCHEME, { realm: realm() }),
  }
}

const invalid = (
  reason: PaymentProblem,
  paymentHash: string | null = null,
): CheckedCredential<PaymentProblem> => ({ kind: 'invalid', reason, paymentHash })

const paymentHashOf = ({ request }: PaymentChallenge): string | null =>
  decodeChargeRequest(request)?.methodDetails.paymentHash ?? null

function digestIn({ bodySha256, isOneUrl }: Binding): { digest?: string } {
  const hasNone = isOneUrl === true && bodySha256 === EMPTY_SHA256
  return hasNone ? {} : { digest: contentDigest(hexBytes(bodySha256) ?? new Uint8Array()) }
}
