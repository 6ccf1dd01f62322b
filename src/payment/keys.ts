/**
 * The Idempotency-Key names an order: on one route, one key is one order, from any client. There are no accounts, so
 * a stranger may send the key of somebody else. What follows from that is decided in `deciding.ts`.
 */
import { base62 } from '../lib/base62.ts'
import { keyedHash, type Secrets } from '../secrets/secrets.ts'
import type { OrderRow } from './store.ts'

/** 8 to 128 visible ASCII characters, spaces inside allowed. The documents say it in these words. */
export const IDEMPOTENCY_KEY = { minLength: 8, maxLength: 128, pattern: '^[!-~][ -~]*$' }

const PATTERN = new RegExp(IDEMPOTENCY_KEY.pattern)

/** The key of a purchase request, and who sent it. */
export type KeyedBy = {
  /** What the key is used for: see `purchaseRoute` and `extensionRoute`. */
  route: string
  key: string
  /** The client's address block, or what stands for it. Null if it is not known: no order is opened by that one. */
  client: string | null
}

/** The order ids that a key stands for, under each configured secret, the current one first. */
export type OrderIds = [string, ...string[]]

export const purchaseRoute = (product: string): string => product
export const extensionRoute = (product: string): string => `${product} extension`

export function isIdempotencyKey(key: string): boolean {
  const { minLength, maxLength } = IDEMPOTENCY_KEY
  return key.length >= minLength && key.length <= maxLength && PATTERN.test(key)
}

export function orderIds(
  secrets: Secrets,
  { route, key }: Pick<KeyedBy, 'route' | 'key'>,
): OrderIds {
  const id = (secret: Uint8Array): string =>
    `order_${base62(keyedHash(secret, route, key).subarray(0, 16))}`
  const [current, ...older] = secrets.keys('order id')
  return [id(current), ...older.map(id)]
}

/** The ids that a key stands for where only the order is known that it should name. */
export function possibleIds(
  secrets: Secrets,
  key: string,
  { product }: Pick<OrderRow, 'product'>,
): string[] {
  return [purchaseRoute(product), extensionRoute(product)].flatMap((route) =>
    orderIds(secrets, { route, key }),
  )
}

/** What an order remembers of the client who opened it; '' when that client is not known. */
export function clientMark(secrets: Secrets, client: string | null): string {
  return client === null ? '' : markUnder(secrets.keys('client address')[0], client)
}

/** Whether this is the client who opened the order, under any configured secret. */
export function isOpener(
  secrets: Secrets,
  client: string | null,
  { opened_by }: Pick<OrderRow, 'opened_by'>,
): boolean {
  return (
    client !== null &&
    secrets.keys('client address').some((secret) => markUnder(secret, client) === opened_by)
  )
}

/** 16 bytes: no two clients of one order share a mark. */
const markUnder = (secret: Uint8Array, client: string): string =>
  keyedHash(secret, client).subarray(0, 16).toString('hex')
