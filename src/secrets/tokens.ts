/** The tokens of a capability: made of its delivery seed, kept as hashes alone. */
import { hash, timingSafeEqual } from 'node:crypto'
import { isToken, type TokenKind, tokenOf } from '../lib/ids.ts'
import { hkdfSha256 } from '../protocol/hmac.ts'

/** The token of this kind that belongs to a delivery seed; the same one each time. */
export function tokenFromSeed(kind: TokenKind, seed: Uint8Array): string {
  return tokenOf(kind, hkdfSha256(seed, `mayfly/token/${kind}`))
}

/** SHA-256 of a token: 256 random bits need no slow hash. */
export function tokenHash(token: string): Buffer {
  // By way of a string: asking for a buffer takes twice the time, and a Hash object ten times.
  return Buffer.from(hash('sha256', token, 'binary'), 'binary')
}

/** Whether `token` is well formed, of this kind, and the one whose hash was stored. */
export function isTokenOf(kind: TokenKind, token: string, storedHash: Uint8Array): boolean {
  return isToken(kind, token) && timingSafeEqual(tokenHash(token), storedHash)
}
