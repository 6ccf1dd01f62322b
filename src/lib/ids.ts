/**
 * Identifiers and tokens. Both begin with their kind, so that people and secret scanners recognise them. A
 * token ends with a checksum, so that a typo fails without a look-up.
 */
import { base62, base62Number } from './base62.ts'
import { PRODUCT_TOKEN_KINDS, type ProductIdKind, type ProductTokenKind } from './product-names.ts'

/** Orders and switches belong to no product alone. */
export type IdKind = 'order' | 'pulse_switch' | ProductIdKind
export type TokenKind = ProductTokenKind

const TOKEN = /^([a-z]+_[a-z]+)_[0-9A-Za-z]{49}$/
/** The shortest kind, a `_` and 49 digits. */
const SHORTEST_TOKEN = Math.min(...PRODUCT_TOKEN_KINDS.map((kind) => kind.length)) + 50
const TOKEN_ANYWHERE = new RegExp(`(?:${PRODUCT_TOKEN_KINDS.join('|')})_[0-9A-Za-z]{49}`, 'g')
/** The last characters can be guessed. What is shorter than this opens nothing. It ends where another token begins. */
const PART_OF_TOKEN = new RegExp(
  `(${PRODUCT_TOKEN_KINDS.join('|')})_(?:(?!${PRODUCT_TOKEN_KINDS.join('_|')}_)[0-9A-Za-z]){16,}`,
  'g',
)

/** A new identifier: 128 random bits in 22 digits. */
export function newId(kind: IdKind): string {
  return `${kind}_${base62(crypto.getRandomValues(new Uint8Array(16)))}`
}

/** Whether `text` has the form of an identifier of this kind. */
export function isId(kind: IdKind, text: string): boolean {
  return text.length === kind.length + 23 && new RegExp(`^${kind}_[0-9A-Za-z]{22}$`).test(text)
}

/** The token for 32 secret bytes: its kind, 43 digits, and 6 digits of the CRC-32 of both. */
export function tokenOf(kind: TokenKind, secret: Uint8Array): string {
  const body = `${kind}_${base62(secret)}`
  return body + checksum(body)
}

/** Whether `text` is a well-formed token of this kind. */
export function isToken(kind: TokenKind, text: string): boolean {
  return TOKEN.exec(text)?.[1] === kind && hasChecksum(text)
}

/** Whether `text` contains a well-formed token of any kind. */
export function containsToken(text: string): boolean {
  if (text.length < SHORTEST_TOKEN) return false
  for (const [candidate] of text.matchAll(TOKEN_ANYWHERE)) if (hasChecksum(candidate)) return true
  return false
}

/** The text without what looks like a token of any kind, or like most of one: its kind stays. */
export const hideTokens = (text: string): string => text.replace(PART_OF_TOKEN, '$1_[hidden]')

function hasChecksum(token: string): boolean {
  return token.slice(-6) === checksum(token.slice(0, -6))
}

function checksum(body: string): string {
  return base62Number(crc32(body), 6)
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value
})

/** The unsigned CRC-32 (ISO 3309, as in zip and PNG) of an ASCII text. It distinguishes a typo from a wrong token. */
function crc32(ascii: string): number {
  let crc = 0xffffffff
  for (let i = 0; i < ascii.length; i++) {
    crc = (CRC_TABLE[(crc ^ ascii.charCodeAt(i)) & 0xff] ?? 0) ^ (crc >>> 8)
  }
  return (crc ^ 0xffffffff) >>> 0
}
