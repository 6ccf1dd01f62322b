/** The tokens of a capability: made of its delivery seed, kept as hashes alone. */
import { hash, hkdfSync, timingSafeEqual } from 'node:crypto'
import { isToken, type TokenKind, tokenOf } from '../lib/ids.ts'

/** The token of this kind that belongs to a delivery seed; the same one each time. */
export function tokenFromSeed(kind: TokenKind, seed: Uint8Array): string {
  const secret = hkdfSync('sha256', seed, new Uint8Array(), `mayfly/token/${kind}`, 32)
  return tokenOf(kind, new Uint8Array(secret))
}

/** SHA-256 of a token: 256 random bits need no slow hash. */
export function tokenHash(token: string): Buffer {
  // By way of a string: in one call and without a stream's object it takes a tenth of the time.
  return Buffer.from(hash('sha256', token, 'binary'), 'binary')
}

/** Whether `token` is well formed, of this kind, and the one whose hash was stored. */
export function isTokenOf(kind: TokenKind, token: string, storedHash: Uint8Array): boolean {
  return isToken(kind, token) && timingSafeEqual(tokenHash(token), storedHash)
}
