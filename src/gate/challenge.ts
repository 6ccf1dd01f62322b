/**
 * An intent as a `Payment` challenge (draft-httpauth-payment-01, draft-lightning-charge-00). Nothing
 * of it is stored: it is made of the intent's facts each time, and so is what a credential is
 * compared with.
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
  LIGHTNING_METHOD,
  PAYMENT_PROBLEMS,
  type PaymentCredential,
  paymentChallengeField,
  verifyEcho,
} from '../protocol/payment-auth.ts'
import { challengeId } from '../protocol/payment-challenge-id.ts'
import type { IntentRow } from './intent-store.ts'
import { renderQuote } from './render.ts'

export type GateChallenges = {
  /** The 402 of an intent that is open and on offer. */
  challenge(intent: IntentRow): { field: string; body: object }
  /** Whether the credential answers the challenge of this intent. Its preimage is not looked at. */
  isFor(intent: IntentRow, credential: PaymentCredential): boolean
}

export function createGateChallenges({
  keys,
  publicUrl,
}: {
  keys: readonly [Uint8Array, ...Uint8Array[]]
  publicUrl: () => string
}): GateChallenges {
  function issued(intent: IntentRow, key: Uint8Array, realm: string): IssuedChallenge {
    const fields = {
      realm,
      method: LIGHTNING_METHOD,
      intent: CHARGE_INTENT,
      request: encodeChargeRequest(chargeRequest(intent)),
      expires: rfc3339Seconds(intent.quote_expires_at),
      digest: contentDigest(hexBytes(intent.body_sha256) ?? new Uint8Array()),
    } as const
    // The scheme has no parameter for the request that is protected, so the key of the id has it.
    const { project_id, request_digest } = intent
    const bound = hmacSha256(key, utf8(jcs({ project_id, request_digest })))
    return { id: challengeId(bound, fields), ...fields }
  }

  return {
    challenge(intent) {
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

    isFor(intent, credential) {
      // The name of the service may have changed since: the id, which is an HMAC, holds the realm
      // that we gave. Whoever paid there is not asked to pay here.
      const { realm } = credential.challenge
      // It would stand for the delimiter of the fields; ours never holds one.
      if (realm.includes('|')) return false
      return keys.some((key) => verifyEcho(credential, issued(intent, key, realm)).outcome === 'ok')
    },
  }
}

/** `externalId` is the intent: every payer echoes it, so a credential finds its intent by itself. */
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
