/**
 * HMAC-SHA-256 (RFC 2104) from two one-shot hashes. Every paid request computes a macaroon, which is a chain
 * of a dozen HMACs, and createHmac takes two to three times as long for each.
 */
import { hash } from 'node:crypto'
import { concat, utf8 } from '../lib/bytes.ts'

export function hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array<ArrayBuffer> {
  const digest = hmacSha256Latin1(key, message)
  // 32 bytes of its own: a piece of a larger buffer would keep that in memory for as long as a key lives.
  const bytes = new Uint8Array(DIGEST_BYTES)
  for (let i = 0; i < DIGEST_BYTES; i++) bytes[i] = digest.charCodeAt(i)
  return bytes
}

/** The same as a string of 32 characters, a byte each: hashes come out of Node faster this way. */
export function hmacSha256Latin1(key: Uint8Array, message: Uint8Array): string {
  const short = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key
  const length = BLOCK_BYTES + message.length
  const inner = length > INNER.length ? Buffer.allocUnsafe(length) : INNER
  for (let i = 0; i < short.length; i++) {
    const byte = short[i] ?? 0
    inner[i] = byte ^ 0x36
    OUTER[i] = byte ^ 0x5c
  }
  inner.fill(0x36, short.length, BLOCK_BYTES)
  OUTER.fill(0x5c, short.length, BLOCK_BYTES)
  inner.set(message, BLOCK_BYTES)
  OUTER.write(hash('sha256', inner.subarray(0, length), 'binary'), BLOCK_BYTES, 'latin1')
  const digest = hash('sha256', OUTER, 'binary')
  inner.fill(0, 0, length)
  OUTER.fill(0)
  return digest
}

/**
 * 32 bytes of HKDF-SHA-256 (RFC 5869) without a salt: one step of extracting and one of expanding.
 */
export function hkdfSha256(secret: Uint8Array, info: string): Uint8Array<ArrayBuffer> {
  return hmacSha256(hmacSha256(NO_SALT, secret), concat(utf8(info), FIRST))
}

const BLOCK_BYTES = 64
const DIGEST_BYTES = 32

/**
 * What the two hashes read, used again for each HMAC: new memory would take longer than the hashing. Each use
 * ends by wiping them.
 */
const INNER = Buffer.alloc(1024)
const OUTER = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES)

const NO_SALT = new Uint8Array(32)
const FIRST = Uint8Array.of(1)
