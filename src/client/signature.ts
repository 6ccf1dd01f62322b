/** Checks who signed a captured request. Nothing is sent: secret and event stay on this machine. */
import type { CatchEvent } from '../catch/schema.ts'
import {
  checkSignature,
  type SignatureProvider,
  type SignatureRules,
} from '../protocol/signatures/signatures.ts'
import type { SignatureRule } from '../protocol/signatures/verdict.ts'
import { eventBody } from './export.ts'

/** The secret that sender and receiver share, and the rules by which it signs. */
export type SignatureCheck = SignatureRules & { secret: string }

/**
 * Whether a signature is valid, or which rule it failed; `header` is the one that says so, if any.
 * `sentence` is for people.
 */
export type SignatureVerdict = { provider: SignatureProvider; sentence: string } & (
  | { valid: true }
  | { valid: false; rule: SignatureRule; header: string | null }
)

/**
 * Whether the sender of an event signed it with this secret: GitHub, Stripe, Slack, Shopify, Standard
 * Webhooks, or any HMAC of the body. Its exact bytes are checked, and a timestamp is compared with the
 * time at which the request came, not with now. Runs in WebCrypto and compares in constant time.
 * @throws RangeError if `toleranceSeconds` is negative or no number.
 *
 * ```ts
 * const { valid, sentence } = await verifySignature(event, { provider: 'stripe', secret: 'whsec_…' })
 * ```
 */
export async function verifySignature(
  event: CatchEvent,
  { secret, ...rules }: SignatureCheck,
): Promise<SignatureVerdict> {
  const request = {
    headers: event.headers,
    body: eventBody(event),
    receivedAtMs: Date.parse(event.receivedAt),
  }
  return { provider: rules.provider, ...(await checkSignature(request, secret, rules)) }
}
