/**
 * L402 tokens: macaroons that bind a payment to one order and one request. Nothing is stored: the root
 * key is derived from a master key and the identifier, and the state of the order revokes the token.
 */
import { base64, concat, hex, hexBytes, utf8, utf8Text } from '../lib/bytes.ts'
import { hmacSha256 } from './hmac.ts'
import { l402MacaroonsIn, readL402Credential } from './l402.ts'
import { decodeMacaroon, encodeMacaroon, isSignedBy, mintMacaroon } from './macaroon.ts'
import { provesPayment } from './preimage.ts'

/** The identifier of a token: both are 32 bytes in lower-case hex. */
export type L402Identifier = { paymentHash: string; tokenId: string }

/** What a token is valid for. `route` is the request target as received, query included. */
export type L402Binding = {
  service: string
  /** Unix milliseconds; the token is valid before it, to the second. */
  expiresAt: number
  aud: string
  order: string
  plan: string
  method: string
  route: string
  bodySha256: string
}

/** The request that a credential came with. Its address is not compared: a service that has moved accepts its tokens. */
export type L402Request = {
  /** Unix milliseconds. */
  now: number
  service: string
  method: string
  route: string
  bodySha256: string
}

/**
 * `violated` is a genuine and paid token that was made for another request or has expired: a fresh
 * challenge (402) lets a client that cached it recover. What is `invalid` never was valid (401); `paymentHash` is that of
 * a genuine macaroon, which is judged before the preimage beside it is read. The order and plan of `ok` are those of the
 * order with that payment hash.
 */
export type L402Outcome =
  | { outcome: 'none' }
  | { outcome: 'invalid'; paymentHash: string | null }
  | { outcome: 'violated'; paymentHash: string }
  | { outcome: 'ok'; paymentHash: string; order: string; plan: string }

/**
 * A longer request target must be refused before a token is minted: the token would exceed
 * MAX_MACAROON_BYTES, and the limits on header fields when it comes back.
 */
export const MAX_ROUTE_BYTES = 2048

/**
 * The token in standard base64. The same arguments make the same token, so that a repeated quote
 * shows the same challenge.
 * @throws TypeError for arguments that would make a token that cannot be redeemed.
 */
export function mintL402(
  masterKey: Uint8Array,
  identifier: L402Identifier,
  binding: L402Binding,
): string {
  const { service, expiresAt, aud, order, plan, method, route, bodySha256 } = binding
  // The services caveat uses comma and colon as separators.
  if (!/^[a-z][a-z0-9_-]*$/.test(service)) throw new TypeError('service must be a plain name')
  if (!Number.isSafeInteger(expiresAt)) throw new TypeError('expiresAt must be an integer')
  if (!HASH.test(bodySha256)) throw new TypeError('bodySha256 must be 64 lower-case hex digits')
  if (utf8(route).length > MAX_ROUTE_BYTES) throw new TypeError('route is too long')
  const bytes = encodeIdentifier(identifier)
  const caveats = [
    `services=${service}:0`,
    `${service}_valid_until=${Math.floor(expiresAt / 1000)}`,
    `aud=${aud}`,
    `order=${order}`,
    `plan=${plan}`,
    `method=${method.toUpperCase()}`,
    `route=${route}`,
    `body_sha256=${bodySha256}`,
  ]
  const macaroon = mintMacaroon(l402RootKey(masterKey, bytes), {
    location: utf8(aud),
    identifier: bytes,
    caveats: caveats.map(utf8),
  })
  return base64(encodeMacaroon(macaroon))
}

/**
 * Verifies the `Authorization` field lines for this request. `masterKeys` are the current key and its
 * predecessors. The preimage proves the payment without a node. The caller checks that the order is the
 * token's and is not closed.
 */
export function verifyL402(
  fieldLines: readonly string[],
  masterKeys: readonly Uint8Array[],
  request: L402Request,
): L402Outcome {
  const reading = readL402Credential(fieldLines)
  if (reading === 'none') return { outcome: 'none' }
  if (reading === 'malformed') {
    const [genuine] = l402MacaroonsIn(fieldLines).flatMap(
      (bytes) => genuineIn(bytes, masterKeys) ?? [],
    )
    return { outcome: 'invalid', paymentHash: genuine?.paymentHash ?? null }
  }
  const { macaroon, preimage } = reading
  const genuine = genuineIn(macaroon, masterKeys)
  if (genuine === null) return { outcome: 'invalid', paymentHash: null }
  const { paymentHash, caveats } = genuine
  if (!provesPayment(preimage, paymentHash)) return { outcome: 'invalid', paymentHash }
  const judged = judgeCaveats(caveats, request, preimage)
  return typeof judged === 'string'
    ? { outcome: judged, paymentHash }
    : { outcome: 'ok', paymentHash, ...judged }
}

/** The payment hash and the caveats of a macaroon that we minted, or null. */
function genuineIn(bytes: Uint8Array, masterKeys: readonly Uint8Array[]) {
  const macaroon = decodeMacaroon(bytes)
  const identifier = macaroon && decodeIdentifier(macaroon.identifier)
  if (!macaroon || !identifier) return null
  const isOurs = masterKeys.some((masterKey) =>
    isSignedBy(macaroon, l402RootKey(masterKey, macaroon.identifier)),
  )
  return isOurs ? { paymentHash: identifier.paymentHash, caveats: macaroon.caveats } : null
}

/** The key that signs the macaroon with this identifier. */
export function l402RootKey(masterKey: Uint8Array, identifier: Uint8Array): Uint8Array {
  return hmacSha256(masterKey, concat(utf8('l402-root-v0'), identifier))
}

/** 66 bytes: version 0, payment hash, token id. */
export function encodeIdentifier(identifier: L402Identifier): Uint8Array<ArrayBuffer> {
  const paymentHash = hexBytes(identifier.paymentHash)
  const tokenId = hexBytes(identifier.tokenId)
  if (paymentHash?.length !== 32) throw new TypeError('paymentHash must be 64 hex digits')
  if (tokenId?.length !== 32) throw new TypeError('tokenId must be 64 hex digits')
  return concat(Uint8Array.of(0, 0), paymentHash, tokenId)
}

/** The identifier, or null for another version or length. */
export function decodeIdentifier(bytes: Uint8Array): L402Identifier | null {
  if (bytes.length !== 66 || bytes[0] !== 0 || bytes[1] !== 0) return null
  return { paymentHash: hex(bytes.subarray(2, 34)), tokenId: hex(bytes.subarray(34)) }
}

const HASH = /^[0-9a-f]{64}$/
const BOUND = ['aud', 'order', 'plan', 'method', 'route', 'body_sha256']

/**
 * The holder of a token may append caveats, and each can only narrow it: a caveat that would widen it, or
 * that we do not understand, makes the token invalid. All caveats are read before any is compared, so
 * that an invalid token is never reported as one for another request.
 */
function judgeCaveats(
  caveats: readonly Uint8Array[],
  request: L402Request,
  preimage: string,
): 'invalid' | 'violated' | { order: string; plan: string } {
  const validUntilName = `${request.service}_valid_until`
  const bound = new Map<string, string>()
  const services: string[] = []
  let validUntil: number | null = null
  for (const caveat of caveats) {
    const text = utf8Text(caveat)
    const split = text?.indexOf('=') ?? -1
    if (text === null || split < 1) return 'invalid'
    const condition = text.slice(0, split)
    const value = text.slice(split + 1)
    if (condition === 'services') {
      services.push(value)
    } else if (condition === validUntilName) {
      if (!/^[0-9]{1,12}$/.test(value)) return 'invalid'
      if (validUntil !== null && Number(value) > validUntil) return 'invalid'
      validUntil = Number(value)
    } else if (condition === 'preimage') {
      // Some clients append the preimage as a caveat, although they send it anyway.
      if (value.toLowerCase() !== preimage) return 'invalid'
    } else if (BOUND.includes(condition)) {
      if ((bound.get(condition) ?? value) !== value) return 'invalid'
      bound.set(condition, value)
    } else if (!condition.endsWith('_valid_until')) {
      // The L402 specification skips an unknown caveat, and so lifts a restriction that a holder meant to
      // add. Only the timeout of another service may be skipped.
      return 'invalid'
    }
  }
  if (!BOUND.every((condition) => bound.has(condition))) return 'invalid'
  if (!services.every((list) => list.split(',').includes(`${request.service}:0`))) {
    return 'violated'
  }
  // After `services`: the token of another service has only that service's timeout.
  if (validUntil === null) return 'invalid'
  const expected = {
    method: request.method.toUpperCase(),
    route: request.route,
    body_sha256: request.bodySha256,
  }
  for (const [condition, value] of Object.entries(expected)) {
    if (bound.get(condition) !== value) return 'violated'
  }
  if (request.now >= validUntil * 1000) return 'violated'
  return { order: bound.get('order') ?? '', plan: bound.get('plan') ?? '' }
}
