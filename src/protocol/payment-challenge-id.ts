/** Challenge ids of the `Payment` scheme: an HMAC over the other fields of a challenge. */
import { base64url, equalBytes, utf8 } from '../lib/bytes.ts'
import { hmacSha256 } from './hmac.ts'
import type { PaymentChallenge } from './payment-auth.ts'

/** Other implementations also refuse shorter secrets. */
const MIN_SECRET_BYTES = 32

export type ChallengeFields = Omit<PaymentChallenge, 'id'>

/**
 * The id that binds these fields (draft-httpauth-payment-01, HMAC-bound challenge ids).
 * @throws TypeError for a short secret, or a `|` inside a field: it would stand for the delimiter.
 */
export function challengeId(secret: Uint8Array, fields: ChallengeFields): string {
  if (secret.length < MIN_SECRET_BYTES)
    throw new TypeError('a challenge secret is 32 bytes or more')
  const slots = slotsOf(fields)
  if (slots.some((slot) => slot.includes('|'))) throw new TypeError('a challenge field holds a |')
  return base64url(hmacSha256(secret, utf8(slots.join('|'))))
}

/** Whether a challenge's id was made by one of our secrets (the current one, previous ones). */
export function isOwnChallenge(
  secrets: readonly Uint8Array[],
  challenge: PaymentChallenge,
): boolean {
  // A challenge of this service never contains a pipe; a peer's echo may.
  if (slotsOf(challenge).some((slot) => slot.includes('|'))) return false
  const id = utf8(challenge.id)
  return secrets.some((secret) => equalBytes(utf8(challengeId(secret, challenge)), id))
}

/**
 * An absent optional field is an empty slot, and `description` has no slot. `header`, if it is set, is an
 * extra slot before `opaque`: all implementations do this, although the draft's text appends it.
 */
function slotsOf(fields: ChallengeFields): string[] {
  const { realm, method, intent, request, expires = '', digest = '', header, opaque = '' } = fields
  const extra = header === undefined ? [] : [header]
  return [realm, method, intent, request, expires, digest, ...extra, opaque]
}
