/**
 * The `Payment` authentication scheme with Lightning `charge` (draft-httpauth-payment-01,
 * draft-lightning-charge-00): challenge, credential and receipt, for server and browser alike.
 * Functions that read a peer's text return null or an outcome. They throw only if the caller is wrong.
 */
import { base64, base64Bytes, base64url, utf8, utf8Text } from '../lib/bytes.ts'
import { type Json, jcs } from '../lib/jcs.ts'
import { isObject, objectIn } from '../lib/json.ts'
import { authScheme, serialiseChallenge } from './auth-params.ts'

export const PAYMENT_SCHEME = 'Payment'
export const LIGHTNING_METHOD = 'lightning'
export const CHARGE_INTENT = 'charge'

/** A challenge as it stands on the wire. `request` and `opaque` are base64url texts. */
export type PaymentChallenge = {
  id: string
  realm: string
  method: string
  intent: string
  request: string
  expires?: string
  digest?: string
  opaque?: string
  description?: string
  header?: string
}

/** A challenge of this service. It always has an expiry, and no optional member but `digest`. */
export type IssuedChallenge = {
  id: string
  realm: string
  method: typeof LIGHTNING_METHOD
  intent: typeof CHARGE_INTENT
  request: string
  expires: string
  digest?: string
}

/** The decoded `request` of a Lightning charge; `amount` is satoshis as a decimal string. */
export type ChargeRequest = {
  amount: string
  currency: 'sat'
  description?: string
  externalId?: string
  methodDetails: {
    invoice: string
    network: 'mainnet' | 'regtest' | 'signet'
    paymentHash?: string
  }
}

export type PaymentCredential = {
  /** The payer's echo of the challenge. It proves nothing before `isEcho`. */
  challenge: PaymentChallenge
  payload: { preimage: string }
}

export type Receipt = {
  challengeId: string
  method: string
  /** The payment hash, never the preimage. */
  reference: string
  status: 'success'
  timestamp: string
}

/** More than enough for an invoice with many route hints. */
export const MAX_CREDENTIAL_CHARS = 65_536
/** The limit of other implementations. */
export const MAX_REQUEST_CHARS = 16_384
const MAX_RECEIPT_CHARS = 8_192
/** Nobody sends more lines; reading them would only cost time. */
const MAX_CREDENTIAL_LINES = 4

const PROBLEMS_URI = 'https://paymentauth.org/problems'

/** Problem types (RFC 9457) of a 402; the more specific type of the lightning draft if it has one. */
export const PAYMENT_PROBLEMS = {
  'payment-required': {
    type: `${PROBLEMS_URI}/payment-required`,
    title: 'Payment Required',
  },
  'malformed-credential': {
    type: `${PROBLEMS_URI}/malformed-credential`,
    title: 'Malformed Credential',
    lightningType: `${PROBLEMS_URI}/lightning/malformed-credential`,
  },
  'invalid-challenge': {
    type: `${PROBLEMS_URI}/invalid-challenge`,
    title: 'Invalid Challenge',
    lightningType: `${PROBLEMS_URI}/lightning/unknown-challenge`,
  },
  'payment-expired': {
    type: `${PROBLEMS_URI}/payment-expired`,
    title: 'Payment Expired',
    lightningType: `${PROBLEMS_URI}/lightning/expired-invoice`,
  },
  'verification-failed': {
    type: `${PROBLEMS_URI}/verification-failed`,
    title: 'Verification Failed',
    lightningType: `${PROBLEMS_URI}/lightning/invalid-preimage`,
  },
} as const

export type PaymentProblem = keyof typeof PAYMENT_PROBLEMS

/** `request`: base64url of the canonical JSON, because payers canonicalise what they echo. */
export function encodeChargeRequest(request: ChargeRequest): string {
  return encodeJson(request)
}

/** What a challenge asks for, or null if it is not a readable Lightning charge. */
export function decodeChargeRequest(encoded: string): ChargeRequest | null {
  const request = decodeJson(encoded, MAX_REQUEST_CHARS)
  const details = request?.methodDetails
  if (!isObject(request) || !isObject(details)) return null
  const { amount, currency, description, externalId } = request
  const { invoice, network = 'mainnet', paymentHash } = details
  // Sixteen digits are enough for all satoshis, and stay an exact number.
  if (typeof amount !== 'string' || !/^[1-9][0-9]{0,15}$/.test(amount)) return null
  if (currency !== 'sat' || typeof invoice !== 'string' || invoice === '') return null
  if (network !== 'mainnet' && network !== 'regtest' && network !== 'signet') return null
  if (!isOptionalString(description) || !isOptionalString(externalId)) return null
  if (!isOptionalString(paymentHash)) return null
  if (paymentHash !== undefined && !HASH.test(paymentHash)) return null
  return {
    amount,
    currency,
    ...(description === undefined ? {} : { description }),
    ...(externalId === undefined ? {} : { externalId }),
    methodDetails: { invoice, network, ...(paymentHash === undefined ? {} : { paymentHash }) },
  }
}

/**
 * The `WWW-Authenticate` field value of a challenge.
 * @throws TypeError for a value that would need an escape.
 */
export function paymentChallengeField(challenge: IssuedChallenge): string {
  const { id, realm, method, intent, request, expires, digest } = challenge
  return serialiseChallenge(PAYMENT_SCHEME, {
    id,
    realm,
    method,
    intent,
    request,
    expires,
    digest,
  })
}

/** The Payment credential among the `Authorization` field lines of a request. */
export function readPaymentCredential(
  fieldLines: readonly string[],
): PaymentCredential | 'none' | 'malformed' {
  const lines = fieldLines.filter((line) => authScheme(line) === 'payment')
  const [line, ...more] = lines
  if (line === undefined) return 'none'
  // One credential a request (draft-httpauth-payment-01): two would leave open which one is spent.
  if (more.length > 0 || line.length > MAX_CREDENTIAL_CHARS) return 'malformed'
  const json = decodeJson(ONE_TOKEN.exec(line)?.[1] ?? '', MAX_CREDENTIAL_CHARS)
  if (!isObject(json?.challenge) || !isObject(json.payload)) return 'malformed'
  const challenge = challengeOf(json.challenge)
  const { preimage } = json.payload
  if (challenge === null || typeof preimage !== 'string' || !PREIMAGE.test(preimage)) {
    return 'malformed'
  }
  return { challenge, payload: { preimage: preimage.toLowerCase() } }
}

/**
 * The challenges that all Payment lines echo, whatever else stands in them. A credential that cannot be read
 * may still show a genuine challenge of a paid order: its sender must not be asked to pay again.
 */
export function paymentChallengesIn(fieldLines: readonly string[]): PaymentChallenge[] {
  return fieldLines
    .slice(0, MAX_CREDENTIAL_LINES)
    .filter((line) => line.length <= MAX_CREDENTIAL_CHARS)
    .map((line) => decodeJson(LEADING_TOKEN.exec(line)?.[1] ?? '', MAX_CREDENTIAL_CHARS))
    .map((json) => (isObject(json?.challenge) ? challengeOf(json.challenge) : null))
    .filter((challenge) => challenge !== null)
}

/**
 * Whether a credential echoes the challenge that was issued. The values of the members count, not their
 * text: payers order and canonicalise as they like. `digest`, `opaque`, `description` and `header` may be
 * missing, because a widespread payer drops them, but not changed.
 */
export function isEcho(
  { challenge }: PaymentCredential,
  issued: PaymentChallenge & { expires: string },
): boolean {
  let isSame = true
  for (const member of REQUIRED_ECHO)
    isSame = equalText(challenge[member], issued[member]) && isSame
  for (const member of OPTIONAL_ECHO) {
    const echoed = challenge[member]
    isSame = (echoed === undefined || equalText(echoed, issued[member])) && isSame
  }
  return isSame
}

/** The `Content-Digest` item of a body's SHA-256 (RFC 9530), as it stands in a challenge. */
export function contentDigest(sha256: Uint8Array): string {
  if (sha256.length !== 32) throw new TypeError('a SHA-256 must be 32 bytes')
  return `sha-256=:${base64(sha256)}:`
}

/** The `Payment-Receipt` field value. Its members must come from the verified record, not from an echo. */
export function encodeReceipt(receipt: Receipt): string {
  const { challengeId, method, reference, status, timestamp } = receipt
  return encodeJson({ challengeId, method, reference, status, timestamp })
}

/** The receipt of a `Payment-Receipt` field value, or null. Unknown members are dropped. */
export function decodeReceipt(encoded: string): Receipt | null {
  const receipt = decodeJson(encoded, MAX_RECEIPT_CHARS)
  if (receipt === null) return null
  const { challengeId, method, reference, status, timestamp } = receipt
  if (!isText(challengeId) || !isText(method) || !isText(reference)) return null
  if (status !== 'success' || !isText(timestamp) || timestampMs(timestamp) === null) return null
  return { challengeId, method, reference, status, timestamp }
}

const HASH = /^[0-9a-f]{64}$/
const PREIMAGE = /^[0-9a-f]{64}$/i
/** A token68 (RFC 9110 §11.2) and nothing behind it. */
const ONE_TOKEN = /^[ \t]*Payment[ \t]+([A-Za-z0-9._~+/-]+=*)[ \t]*$/i
const LEADING_TOKEN = /^[ \t]*Payment[ \t]+([A-Za-z0-9_-]+={0,2})/i
const REQUIRED_ECHO = ['id', 'realm', 'method', 'intent', 'request', 'expires'] as const
const OPTIONAL_ECHO = ['digest', 'opaque', 'description', 'header'] as const
// RFC 3339 §5.6 with the upper-case T and Z that payers insist on.
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

function timestampMs(text: string): number | null {
  const unixMs = TIMESTAMP.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(unixMs) ? null : unixMs
}

function challengeOf(members: Record<string, unknown>): PaymentChallenge | null {
  const { id, realm, method, intent, request } = members
  if (!isStorable(id) || !isStorable(realm) || !isStorable(request)) return null
  if (!isStorable(method) || !isStorable(intent)) return null
  const challenge: PaymentChallenge = { id, realm, method, intent, request }
  for (const member of ['expires', ...OPTIONAL_ECHO] as const) {
    const value = members[member]
    if (value === undefined) continue
    if (!isStorable(value)) return null
    challenge[member] = value
  }
  return challenge
}

function encodeJson(value: Json): string {
  return base64url(utf8(jcs(value)))
}

/** Padding is tolerated, as draft-lightning-charge-00 asks; the other alphabet is not. */
function decodeJson(encoded: string, maxChars: number): Record<string, unknown> | null {
  if (encoded.length > maxChars || !/^[A-Za-z0-9_-]+={0,2}$/.test(encoded)) return null
  const bytes = base64Bytes(encoded)
  const text = bytes === null ? null : utf8Text(bytes)
  return text === null ? null : objectIn(text)
}

function isOptionalString(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string'
}

/** Neither stores nor canonical JSON accept a NUL or a lone surrogate, so an echo may not contain one. */
function isStorable(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Compares in time that depends only on the lengths; a missing value equals no other. */
function equalText(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined || a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
