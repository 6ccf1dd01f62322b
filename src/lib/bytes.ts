/** Bytes and their spellings. Strict both ways: one value has one accepted spelling. */

const encoder = new TextEncoder()
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export const utf8 = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text)

/** The text, or null where the bytes are not UTF-8. */
export function utf8Text(bytes: Uint8Array): string | null {
  try {
    return strictDecoder.decode(bytes)
  } catch {
    return null
  }
}

export function concat(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** Lower-case hex. */
export function hex(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0')
  return text
}

/** Bytes of hex in either case, or null. */
export function hexBytes(text: string): Uint8Array<ArrayBuffer> | null {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return null
  const bytes = new Uint8Array(text.length / 2)
  for (let i = 0; i < bytes.length; i++)
    bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16)
  return bytes
}

/** Standard base64 with padding. */
export function base64(bytes: Uint8Array): string {
  let binary = ''
  // In slices: spreading a large array into one call overflows the stack.
  for (let i = 0; i < bytes.length; i += 8192) {
    binary += String.fromCharCode(...bytes.subarray(i, i + 8192))
  }
  return btoa(binary)
}

/** base64url without padding (RFC 4648 §5). */
export function base64url(bytes: Uint8Array): string {
  return base64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/**
 * Bytes of base64 in either alphabet, padded or not, or null. Unused trailing bits must be zero
 * and padding, when there, complete, so that two spellings of one value differ in nothing else.
 */
export function base64Bytes(text: string): Uint8Array<ArrayBuffer> | null {
  const body = text.replace(/={1,2}$/, '')
  if (body.length % 4 === 1 || !/^[A-Za-z0-9+/_-]*$/.test(body)) return null
  if (text.length !== body.length && text.length % 4 !== 0) return null
  const standard = body.replaceAll('-', '+').replaceAll('_', '/')
  const binary = atob(standard)
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  return base64(bytes).replaceAll('=', '') === standard ? bytes : null
}

/** Equality in time that depends on the lengths alone. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= (a[i] ?? 0) ^ (b[i] ?? 0)
  return difference === 0
}
