/**
 * An intent as a `Payment` challenge (draft-httpauth-payment-01, draft-lightning-charge-00). The
 * challenge is not stored. It is computed from the intent when it is sent, and again to check the
 * credential that answers it.
 */
import { hexBytes, utf8 } from '../lib/bytes.ts'
import { rfc3339Seconds } from '../lib/clock.ts'
import { jcs } from '../lib/jcs.ts'
import { hmacSha256 } from '../protocol/hmac.ts'
import {
  CHARGE_INTENT,
  contentDigest,
  encodeChargeRequest,
  type IssuedChallenge,
  isEcho,
  LIGHTNING_METHOD,
  PAYMENT_PROBLEMS,
  type PaymentCredential,
  paymentChallengeField,
} from '../protocol/payment-auth.ts'
import { challengeId } from '../protocol/payment-challenge-id.ts'
import { renderQuote } from './render.ts'
import type { IntentRow } from './store.ts'

export function createGateChallenges({
  keys,
  publicUrl,
}: {
  keys: readonly [Uint8Array, ...Uint8Array[]]
  publicUrl: () => string
}) {
  function issued(intent: IntentRow, key: Uint8Array, realm: string): IssuedChallenge {
    const fields = {
      realm,
      method: LIGHTNING_METHOD,
      intent: CHARGE_INTENT,
      request: encodeChargeRequest(chargeRequest(intent)),
      expires: rfc3339Seconds(intent.quote_expires_at),
      digest: contentDigest(hexBytes(intent.body_sha256) ?? new Uint8Array()),
    } as const
    // The scheme has no parameter for the protected request, so the key of the challenge id binds it.
    const { project_id, request_digest } = intent
    const bound = hmacSha256(key, utf8(jcs({ project_id, request_digest })))
    return { id: challengeId(bound, fields), ...fields }
  }

  return {
    /** The 402 answer for an intent that can still be paid. */
    challenge(intent: IntentRow): { field: string; body: object } {
      const challenge = issued(intent, keys[0], new URL(publicUrl()).hostname)
      return {
        field: paymentChallengeField(challenge),
        body: {
          ...PAYMENT_PROBLEMS['payment-required'],
          status: 402,
          detail: 'Pay the invoice and repeat the identical request with the credential.',
          error: 'payment required',
          challengeId: challenge.id,
          challenge,
          request: chargeRequest(intent),
          ...renderQuote(intent),
        },
      }
    },

    /** Whether the credential answers this intent's challenge. Does not check the preimage. */
    isFor(intent: IntentRow, credential: PaymentCredential): boolean {
      // The service's host name may have changed since. The challenge id, an HMAC, proves the echoed
      // realm, so a payment made under the old name is still accepted.
      const { realm } = credential.challenge
      // `|` delimits the fields of the HMAC. Our realms never contain it.
      if (realm.includes('|')) return false
      return keys.some((key) => isEcho(credential, issued(intent, key, realm)))
    },
  }
}

export type GateChallenges = ReturnType<typeof createGateChallenges>

/** `externalId` is the intent's id. Payers echo it, so that a credential names its intent. */
function chargeRequest(intent: IntentRow) {
  return {
    amount: String(intent.amount_sats),
    currency: 'sat' as const,
    externalId: intent.intent_id,
    methodDetails: {
      invoice: intent.bolt11,
      network: intent.network,
      paymentHash: intent.payment_hash,
    },
  }
}
