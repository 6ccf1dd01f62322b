/**
 * The Idempotency-Key names an order. There are no accounts, so all keys share one namespace, and
 * a stranger must not reach somebody's order by guessing its name.
 */
import { base62 } from '../lib/base62.ts'
import { equalBytes } from '../lib/bytes.ts'
import { keyedHash, type Secrets } from './secrets.ts'

const MIN_CHARACTERS = 8
const MAX_CHARACTERS = 128

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const LONG_HEX = /^[0-9a-f]{32,}$/i
const LONG_BASE64URL = /^[A-Za-z0-9_-]{22,}$/

/** 8 to 128 visible ASCII characters, spaces inside allowed. */
export function isIdempotencyKey(key: string): boolean {
  return (
    key.length >= MIN_CHARACTERS &&
    key.length <= MAX_CHARACTERS &&
    /^[\x21-\x7e][\x20-\x7e]*$/.test(key)
  )
}

/** Whether nobody can guess the key: then it reaches its order from any address. */
export function isStrongKey(key: string): boolean {
  if (UUID.test(key) || LONG_HEX.test(key)) return true
  return LONG_BASE64URL.test(key) && /[A-Z]/.test(key) && /[a-z]/.test(key) && /[0-9]/.test(key)
}

/**
 * The order id that a key stands for, under each configured secret, the current one first.
 * A key that could be guessed counts only from the address (IPv4) or /64 (IPv6) that used it.
 */
export function orderIds(
  secrets: Secrets,
  ask: { route: string; key: string; clientAddress: string },
): [string, ...string[]] {
  const scope = isStrongKey(ask.key) ? '' : ask.clientAddress
  const id = (key: Uint8Array): string =>
    `order_${base62(keyedHash(key, ask.route, scope, ask.key).subarray(0, 16))}`
  const [current, ...older] = secrets.keys('order id')
  return [id(current), ...older.map(id)]
}

/** What the order keeps of its key. */
export function keyHash(secrets: Secrets, key: string): Buffer {
  return keyedHash(secrets.keys('idempotency key')[0], key)
}

/** Whether this is the key that the order was opened with, under any configured secret. */
export function isKeyOf(secrets: Secrets, key: string, storedHash: Uint8Array): boolean {
  return secrets
    .keys('idempotency key')
    .some((secret) => equalBytes(keyedHash(secret, key), storedHash))
}
