/** HMACs with WebCrypto, compared in constant time. */
import { base64, base64Bytes, equalBytes, hexBytes } from '../../lib/bytes.ts'

export const HMAC_ALGORITHMS = {
  sha1: { name: 'SHA-1', bytes: 20 },
  sha256: { name: 'SHA-256', bytes: 32 },
  sha384: { name: 'SHA-384', bytes: 48 },
  sha512: { name: 'SHA-512', bytes: 64 },
} as const
/**
 * A hash function, as headers and libraries spell it.
 *
 * ```ts
 * const algorithm: HmacAlgorithm = 'sha512'
 * ```
 */
export type HmacAlgorithm = keyof typeof HMAC_ALGORITHMS

/** The HMAC (RFC 2104) of the message. The key must not be empty. */
export async function mac(
  message: Uint8Array<ArrayBuffer>,
  key: Uint8Array<ArrayBuffer>,
  algorithm: HmacAlgorithm = 'sha256',
): Promise<Uint8Array> {
  const hash = HMAC_ALGORITHMS[algorithm].name
  const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash }, false, [
    'sign',
  ])
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, message))
}

/** Whether one of the signatures is the MAC. All of them are compared, each in constant time. */
export function isAmong(expected: Uint8Array, signatures: readonly Uint8Array[]): boolean {
  let found = false
  for (const signature of signatures) found = equalBytes(expected, signature) || found
  return found
}

/** The 32 bytes of lower-case hex, the only spelling that providers send. Null for anything else. */
export function sha256Hex(text: string): Uint8Array | null {
  return /^[0-9a-f]{64}$/.test(text) ? hexBytes(text) : null
}

/** The 32 bytes of standard base64 with padding, which libraries compare as text. Null for anything else. */
export function sha256Base64(text: string): Uint8Array | null {
  const bytes = base64Bytes(text)
  return bytes?.length === 32 && base64(bytes) === text ? bytes : null
}
