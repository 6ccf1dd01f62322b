/**
 * The Idempotency-Key names an order: on one route, one key is one order, from any client. There are no
 * accounts, so a stranger may send a key that can be guessed. The order therefore remembers which client
 * opened it, and delivers nothing to a stranger.
 */
import { base62 } from '../lib/base62.ts'
import { equalBytes } from '../lib/bytes.ts'
import { keyedHash, type Secrets } from '../secrets/secrets.ts'

const MIN_CHARACTERS = 8
const MAX_CHARACTERS = 128

/** Keys that used to name the same order from any address. */
const FORMERLY_STRONG = [
  /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  /^[0-9a-f]{32,}$/i,
  /^(?=.*[A-Z])(?=.*[a-z])(?=.*[0-9])[A-Za-z0-9_-]{22,}$/,
]

/** 8 to 128 visible ASCII characters, spaces inside allowed. */
export function isIdempotencyKey(key: string): boolean {
  return (
    key.length >= MIN_CHARACTERS &&
    key.length <= MAX_CHARACTERS &&
    /^[\x21-\x7e][\x20-\x7e]*$/.test(key)
  )
}

/** The order id that a key stands for, under each configured secret, the current one first. */
export function orderIds(
  secrets: Secrets,
  { route, key }: { route: string; key: string },
): [string, ...string[]] {
  return idsOf(secrets, [route, '', key])
}

/**
 * The ids under which older releases opened orders. There, a key that seemed guessable named an order
 * only together with the address (IPv4) or the /64 (IPv6) that sent it; such orders are still found.
 */
export function formerOrderIds(
  secrets: Secrets,
  { route, key, clientAddress }: { route: string; key: string; clientAddress: string },
): string[] {
  const wasStrong = FORMERLY_STRONG.some((form) => form.test(key))
  return wasStrong ? [] : idsOf(secrets, [route, clientAddress, key])
}

function idsOf(secrets: Secrets, parts: string[]): [string, ...string[]] {
  const id = (secret: Uint8Array): string =>
    `order_${base62(keyedHash(secret, ...parts).subarray(0, 16))}`
  const [current, ...older] = secrets.keys('order id')
  return [id(current), ...older.map(id)]
}

/** What an order remembers of the client who opened it; '' when that client is not known exactly. */
export function clientMark(secrets: Secrets, client: string | null): string {
  return client === null ? '' : markUnder(secrets.keys('client address')[0], client)
}

/** Whether this is the client who opened the order, under any configured secret. */
export function isClientOf(secrets: Secrets, client: string | null, mark: string): boolean {
  return (
    client !== null &&
    secrets.keys('client address').some((secret) => markUnder(secret, client) === mark)
  )
}

/** 16 bytes: no two clients of one order share a mark. */
const markUnder = (secret: Uint8Array, client: string): string =>
  keyedHash(secret, client).subarray(0, 16).toString('hex')

/** The hash of its key that an order stores. */
export function keyHash(secrets: Secrets, key: string): Buffer {
  return keyedHash(secrets.keys('idempotency key')[0], key)
}

/** Whether this is the key that the order was opened with, under any configured secret. */
export function isKeyOf(secrets: Secrets, key: string, storedHash: Uint8Array): boolean {
  return secrets
    .keys('idempotency key')
    .some((secret) => equalBytes(keyedHash(secret, key), storedHash))
}
