/** Well-formed tokens of no capability. */
import { type TokenKind, tokenOf } from '../../src/lib/ids.ts'

/** A well-formed token that nobody has bought. */
export function aToken(kind: TokenKind): string {
  return tokenOf(kind, crypto.getRandomValues(new Uint8Array(32)))
}

/** The token with one changed digit, so that only its checksum is wrong. */
export function typo(token: string): string {
  const digit = token.at(-20) === 'a' ? 'b' : 'a'
  return `${token.slice(0, -20)}${digit}${token.slice(-19)}`
}
