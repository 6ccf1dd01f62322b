/**
 * GATE receipts: compact JWS (RFC 7515) with Ed25519 (RFC 8037), verified with WebCrypto only. A receipt says
 * that one request was authorized. It admits that request for five minutes; after that it is a record.
 */
import { base64Bytes, equalBytes, utf8, utf8Text } from '../lib/bytes.ts'
import { isObject, objectIn } from '../lib/json.ts'

export const GATE_RECEIPT_TYPE = 'gate-receipt+jwt'

/**
 * The claims. Times are unix seconds.
 *
 * ```ts
 * const { sat, htm, htp } = await verifyGateReceipt(text, { baseUrl })
 * ```
 */
export type GateReceipt = {
  /** The service that signed it. */
  iss: string
  /** The project it is for. */
  aud: string
  /** The receipt's id: the same for every copy of it. */
  jti: string
  iat: number
  /** Until when it lets the request in. */
  exp: number
  intent: string
  route: string
  /** The request's method, and its path with query. */
  htm: string
  htp: string
  /** The request digest: project, route, method, path and body in one hash. */
  req: string
  sat: number
  /** The payment hash. */
  ph: string
  net: string
  /** How the payment was verified. */
  by: 'provider' | 'preimage'
  /** How many earlier receipts of this intent were given back. Left out if there were none. */
  gb?: number
}

/**
 * A public key of a JWKS (RFC 7517): the members that verifying a receipt needs.
 *
 * ```ts
 * const keys: GateKey[] = readGateKeys(jwks) ?? []
 * ```
 */
export type GateKey = { kid: string; x: string }

export type ReceiptVerdict =
  | { outcome: 'ok'; receipt: GateReceipt }
  /** The key may be newer than the given key set. */
  | { outcome: 'unknown key' }
  | { outcome: 'refused'; reason: string }

/** `expired`: it would admit the request otherwise. */
export type AdmissionVerdict = ReceiptVerdict | { outcome: 'expired'; receipt: GateReceipt }

/** What a receipt must match to admit a request. */
export type Admission = {
  audience: string
  route: string
  method: string
  path: string
  requestDigest: string
  /** Unix milliseconds. */
  now: number
}

export const MAX_RECEIPT_CHARS = 8_192
/** A rotation leaves two keys. */
const MAX_KEYS = 16
/** Clocks differ. A receipt from further in the future is refused. */
const MAX_SKEW_SECONDS = 60

/**
 * The Ed25519 keys of a JWKS document; null if it is not one. Other keys are ignored.
 *
 * ```ts
 * const keys = readGateKeys(await (await fetch(`${baseUrl}/.well-known/gate-jwks.json`)).json())
 * ```
 */
export function readGateKeys(jwks: unknown): GateKey[] | null {
  if (!isObject(jwks) || !Array.isArray(jwks.keys) || jwks.keys.length > MAX_KEYS) return null
  const keys: GateKey[] = []
  for (const key of jwks.keys as unknown[]) {
    if (!isObject(key) || key.kty !== 'OKP' || key.crv !== 'Ed25519') continue
    const { kid, x } = key
    if (typeof kid === 'string' && typeof x === 'string') keys.push({ kid, x })
  }
  return keys
}

/** Verifies that one of these keys signed the receipt. A verified receipt can be trusted as a record. */
export async function verifyReceipt(
  receipt: string,
  keys: readonly GateKey[],
): Promise<ReceiptVerdict> {
  const parts = receipt.length <= MAX_RECEIPT_CHARS ? receipt.split('.') : []
  const [head = '', body = '', tail = ''] = parts
  const header = jsonObject(head)
  const signature = base64urlBytes(tail)
  if (parts.length !== 3 || header === null || signature?.length !== 64) return refused('malformed')
  if (header.alg !== 'EdDSA' || header.typ !== GATE_RECEIPT_TYPE || header.crit !== undefined) {
    return refused('not a GATE receipt')
  }
  const key = keys.find(({ kid }) => kid === header.kid)
  if (!key) return { outcome: 'unknown key' }
  const raw = base64urlBytes(key.x)
  if (raw?.length !== 32) return refused('the key is not an Ed25519 key')
  const publicKey = await crypto.subtle.importKey('raw', raw, 'Ed25519', false, ['verify'])
  const isSigned = await crypto.subtle.verify(
    'Ed25519',
    publicKey,
    signature,
    utf8(`${head}.${body}`),
  )
  if (!isSigned) return refused('the signature is wrong')
  const claims = claimsOf(jsonObject(body))
  return claims === null ? refused('a claim is missing') : { outcome: 'ok', receipt: claims }
}

/**
 * Verifies that the receipt admits this request. Its issuer is not compared: the keys of a service sign for that
 * service only, and it may be reached by more than one address. The caller must check that it was not used before, by
 * remembering each `jti` until its `exp`.
 */
export async function verifyAdmission(
  receipt: string,
  keys: readonly GateKey[],
  admission: Admission,
): Promise<AdmissionVerdict> {
  const verdict = await verifyReceipt(receipt, keys)
  if (verdict.outcome !== 'ok') return verdict
  const { aud, route, htm, htp, req, iat, exp } = verdict.receipt
  const seconds = admission.now / 1000
  if (aud !== admission.audience) return refused('another project')
  if (route !== admission.route) return refused('another route')
  if (htm !== admission.method || htp !== admission.path) return refused('another request')
  if (!equalBytes(utf8(req), utf8(admission.requestDigest))) return refused('another request')
  if (iat > seconds + MAX_SKEW_SECONDS) return refused('not valid yet')
  // The last check, so that an expired receipt is known to be right otherwise.
  return exp > seconds ? verdict : { ...verdict, outcome: 'expired' }
}

function claimsOf(json: Record<string, unknown> | null): GateReceipt | null {
  if (json === null) return null
  const { iss, aud, jti, iat, exp, intent, route, htm, htp, req, sat, ph, net, by, gb } = json
  const texts = { iss, aud, jti, intent, route, htm, htp, req, ph, net }
  const numbers = { iat, exp, sat }
  if (!Object.values(texts).every((value) => typeof value === 'string' && value !== '')) return null
  if (!Object.values(numbers).every(Number.isSafeInteger)) return null
  if (by !== 'provider' && by !== 'preimage') return null
  if (gb !== undefined && !isCount(gb)) return null
  return { ...(texts as Texts), ...(numbers as Numbers), by, ...(gb === undefined ? {} : { gb }) }
}

type Numbers = Pick<GateReceipt, 'iat' | 'exp' | 'sat'>
type Texts = Omit<GateReceipt, keyof Numbers | 'by' | 'gb'>

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) > 0

function refused(reason: string): ReceiptVerdict {
  return { outcome: 'refused', reason }
}

function jsonObject(encoded: string): Record<string, unknown> | null {
  const bytes = base64urlBytes(encoded)
  const text = bytes && utf8Text(bytes)
  return text === null ? null : objectIn(text)
}

/** Only unpadded base64url is accepted, so that one receipt has one spelling (RFC 7515 §2). */
function base64urlBytes(text: string): Uint8Array<ArrayBuffer> | null {
  return /^[A-Za-z0-9_-]+$/.test(text) ? base64Bytes(text) : null
}
