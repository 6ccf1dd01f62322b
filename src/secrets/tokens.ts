/** The tokens of a capability. They derive from its delivery seed, and the store has only their hashes. */
import { hash, timingSafeEqual } from 'node:crypto'
import { isToken, type TokenKind, tokenOf } from '../lib/ids.ts'
import { hkdfSha256 } from '../protocol/hmac.ts'

/** The tokens that were derived from a seed, for as long as the seed itself is in memory. */
const derived = new WeakMap<Uint8Array, Map<TokenKind, string>>()

/**
 * The token of this kind that derives from a delivery seed; always the same. A seed is never changed. The
 * settlement that stores the hashes and the answer that has the tokens share the work.
 */
export function tokenFromSeed(kind: TokenKind, seed: Uint8Array): string {
  const known = derived.get(seed) ?? new Map<TokenKind, string>()
  const token = known.get(kind) ?? tokenOf(kind, hkdfSha256(seed, `mayfly/token/${kind}`))
  derived.set(seed, known.set(kind, token))
  return token
}

/** SHA-256 of a token: 256 random bits need no slow hash. */
export function tokenHash(token: string): Buffer {
  // A string as the intermediate step: a buffer takes twice the time, and a Hash object ten times.
  return Buffer.from(hash('sha256', token, 'binary'), 'binary')
}

/** Whether `token` is well formed, of this kind, and matches the stored hash. */
export function isTokenOf(kind: TokenKind, token: string, storedHash: Uint8Array): boolean {
  return isToken(kind, token) && timingSafeEqual(tokenHash(token), storedHash)
}
