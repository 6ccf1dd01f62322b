/** Tokens that open nothing, though they look like it. */
import { type TokenKind, tokenOf } from '../../src/lib/ids.ts'

/** A well-formed token that nobody was given. */
export function aToken(kind: TokenKind): string {
  return tokenOf(kind, crypto.getRandomValues(new Uint8Array(32)))
}

/** The token with one digit changed, so that only its checksum gives it away. */
export function typo(token: string): string {
  const digit = token.at(-20) === 'a' ? 'b' : 'a'
  return `${token.slice(0, -20)}${digit}${token.slice(-19)}`
}
