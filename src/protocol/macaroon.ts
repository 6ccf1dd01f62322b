/**
 * Macaroons in the version 2 binary format, first-party caveats only. Decoding is strict: one
 * macaroon has one accepted encoding, apart from its location, which no signature covers.
 */
import { concat, equalBytes, utf8 } from '../lib/bytes.ts'
import { hmacSha256 } from './hmac.ts'

export type Macaroon = {
  /** An unsigned hint for people, which must decide nothing. Empty if there is no hint. */
  location: Uint8Array
  identifier: Uint8Array
  caveats: readonly Uint8Array[]
  signature: Uint8Array
}

/** Macaroons of this service take 0.5 KiB, and clients append little. */
export const MAX_MACAROON_BYTES = 4096
export const MAX_CAVEATS = 64

/** @throws TypeError beyond the bounds, because it could not be read back. */
export function mintMacaroon(rootKey: Uint8Array, parts: Omit<Macaroon, 'signature'>): Macaroon {
  const macaroon = { ...parts, signature: signatureOf(rootKey, parts) }
  encodeMacaroon(macaroon)
  return macaroon
}

/** Whether every caveat, in this order, was signed under `rootKey`. */
export function isSignedBy(macaroon: Macaroon, rootKey: Uint8Array): boolean {
  return equalBytes(signatureOf(rootKey, macaroon), macaroon.signature)
}

/** @throws TypeError beyond the bounds. */
export function encodeMacaroon(macaroon: Macaroon): Uint8Array<ArrayBuffer> {
  const { location, identifier, caveats, signature } = macaroon
  if (caveats.length > MAX_CAVEATS) throw new TypeError('a macaroon has too many caveats')
  const bytes = concat(
    VERSION_2,
    ...(location.length === 0 ? [] : [field(LOCATION, location)]),
    field(IDENTIFIER, identifier),
    END,
    ...caveats.flatMap((caveat) => [field(IDENTIFIER, caveat), END]),
    END,
    field(SIGNATURE, signature),
  )
  if (bytes.length > MAX_MACAROON_BYTES) throw new TypeError('a macaroon is too long')
  return bytes
}

/** The macaroon, or null for anything but the exact bytes of one. */
export function decodeMacaroon(bytes: Uint8Array): Macaroon | null {
  if (bytes.length > MAX_MACAROON_BYTES || bytes[0] !== 2) return null
  let at = 1
  /** The next field's data if its type is `type`; otherwise reads nothing. */
  const take = (type: number): Uint8Array | null => {
    if (bytes[at] !== type) return null
    const low = bytes[at + 1] ?? 0x80
    const high = bytes[at + 2] ?? 0x80
    // Two LEB128 digits express any length within the bound; a redundant second digit is refused.
    if (low >= 0x80 && (high >= 0x80 || high === 0)) return null
    const start = at + (low < 0x80 ? 2 : 3)
    const end = start + (low < 0x80 ? low : (low & 0x7f) | (high << 7))
    if (end > bytes.length) return null
    at = end
    return bytes.slice(start, end)
  }
  const takeEnd = (): boolean => bytes[at] === 0 && at++ < bytes.length

  const location = take(LOCATION)
  const identifier = take(IDENTIFIER)
  if (location?.length === 0 || identifier === null || !takeEnd()) return null
  const caveats: Uint8Array[] = []
  while (!takeEnd()) {
    // A location or a verification id here would make it a third-party caveat.
    const caveat = take(IDENTIFIER)
    if (caveat === null || !takeEnd() || caveats.length === MAX_CAVEATS) return null
    caveats.push(caveat)
  }
  const signature = take(SIGNATURE)
  if (signature?.length !== 32 || at !== bytes.length) return null
  return { location: location ?? new Uint8Array(), identifier, caveats, signature }
}

const VERSION_2 = Uint8Array.of(2)
const END = Uint8Array.of(0)
const LOCATION = 1
const IDENTIFIER = 2
const SIGNATURE = 6
const KEY_GENERATOR = utf8('macaroons-key-generator')

function signatureOf(
  rootKey: Uint8Array,
  { identifier, caveats }: Pick<Macaroon, 'identifier' | 'caveats'>,
): Uint8Array {
  let signature = hmacSha256(hmacSha256(KEY_GENERATOR, rootKey), identifier)
  for (const caveat of caveats) signature = hmacSha256(signature, caveat)
  return signature
}

function field(type: number, data: Uint8Array): Uint8Array {
  if (data.length > MAX_MACAROON_BYTES) throw new TypeError('a macaroon is too long')
  const length =
    data.length < 0x80 ? [data.length] : [(data.length & 0x7f) | 0x80, data.length >> 7]
  return concat(Uint8Array.of(type, ...length), data)
}
