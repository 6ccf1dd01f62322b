/**
 * HMAC-SHA-256 (RFC 2104) from two one-shot hashes. Every paid request computes a macaroon, which is a chain
 * of a dozen HMACs, and createHmac takes two to three times as long for each.
 */
import { hash } from 'node:crypto'
import { concat, utf8 } from '../lib/bytes.ts'

export function hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array<ArrayBuffer> {
  const short = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key
  const inner = padded(short, 0x36, message)
  const outer = padded(short, 0x5c, hash('sha256', inner, 'buffer'))
  return new Uint8Array(hash('sha256', outer, 'buffer'))
}

/**
 * 32 bytes of HKDF-SHA-256 (RFC 5869) without a salt: one step of extracting and one of expanding.
 */
export function hkdfSha256(secret: Uint8Array, info: string): Uint8Array<ArrayBuffer> {
  return hmacSha256(hmacSha256(NO_SALT, secret), concat(utf8(info), FIRST))
}

const BLOCK_BYTES = 64
const NO_SALT = new Uint8Array(32)
const FIRST = Uint8Array.of(1)

/** The key, filled up to a block and with each byte xor `pad`, then the message. */
function padded(key: Uint8Array, pad: number, message: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(BLOCK_BYTES + message.length)
  for (let i = 0; i < key.length; i++) bytes[i] = (key[i] ?? 0) ^ pad
  bytes.fill(pad, key.length, BLOCK_BYTES)
  bytes.set(message, BLOCK_BYTES)
  return bytes
}
