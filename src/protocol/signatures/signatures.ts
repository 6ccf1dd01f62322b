/** Checks the signatures of webhooks by the rules of their senders. */
import { concat, utf8 } from '../../lib/bytes.ts'
import { parseStrictJsonBytes } from '../../lib/json.ts'
import { isAmong, mac } from './mac.ts'
import { type HmacScheme, hmacScheme, SCHEMES, type Scheme } from './schemes.ts'
import {
  type Finding,
  failed,
  hasName,
  mismatch,
  type SignedRequest,
  tooNew,
  tooOld,
  valid,
} from './verdict.ts'

export const SIGNATURE_PROVIDERS = [...(Object.keys(SCHEMES) as KnownProvider[]), 'hmac'] as const
/**
 * Whose rules a signature follows. `hmac` is any other sender that puts an HMAC of the body into a header.
 *
 * ```ts
 * const provider: SignatureProvider = 'stripe'
 * ```
 */
export type SignatureProvider = (typeof SIGNATURE_PROVIDERS)[number]

/**
 * Whose rules apply, and how far the timestamp may be from the arrival of the request.
 *
 * ```ts
 * const rules: SignatureRules = { provider: 'slack', toleranceSeconds: 600 }
 * ```
 */
export type SignatureRules = {
  /** Default 300, as in the libraries of the providers. Infinity accepts any. */
  toleranceSeconds?: number
} & ({ provider: KnownProvider } | ({ provider: 'hmac' } & HmacScheme))

/** The tolerance of the libraries of Stripe, Slack and Standard Webhooks. */
const DEFAULT_TOLERANCE_SECONDS = 300

/** @throws RangeError if the tolerance is not a number of seconds. */
export async function checkSignature(
  request: SignedRequest,
  secret: string,
  rules: SignatureRules,
): Promise<Finding> {
  const { toleranceSeconds = DEFAULT_TOLERANCE_SECONDS } = rules
  if (!(toleranceSeconds >= 0)) throw new RangeError('toleranceSeconds must be 0 or more')
  if (secret === '') return failed('secret malformed', 'The secret is empty.')
  const scheme = rules.provider === 'hmac' ? hmacScheme(rules) : SCHEMES[rules.provider]
  const finding = await check(request, { scheme, secret, toleranceSeconds })
  const trimmed = secret.trim()
  if (finding.valid || trimmed === secret || trimmed === '') return finding
  const { valid: isRight } = await check(request, { scheme, secret: trimmed, toleranceSeconds })
  return isRight
    ? failed('secret malformed', 'The signature matches without the space around the secret.')
    : finding
}

async function check(
  request: SignedRequest,
  {
    scheme,
    secret,
    toleranceSeconds,
  }: { scheme: Scheme; secret: string; toleranceSeconds: number },
): Promise<Finding> {
  const signed = scheme.read(request)
  if ('failed' in signed) return signed.failed
  const { otherSecret, keyOf = utf8 } = scheme
  if (otherSecret?.form.test(secret)) return failed('secret malformed', otherSecret.sentence)
  const key = keyOf(secret)
  if (!key) {
    return failed('secret malformed', 'The secret must be base64, usually after whsec_.')
  }
  const { header, signatures, algorithm, before, covers, time } = signed
  const message = before === undefined ? request.body : concat(utf8(before), request.body)
  if (!isAmong(await mac(message, key, algorithm), signatures)) return mismatch(header, covers)
  if (time === undefined) return valid()
  const { receivedAtMs } = request
  const freshness = { receivedAtMs, toleranceSeconds, header: time.header }
  const isTooNew = time.mayBeNew ? null : tooNew(time.signedAt, freshness)
  return tooOld(time.signedAt, freshness) ?? isTooNew ?? valid()
}

/**
 * A provider whose headers tell who it is.
 *
 * ```ts
 * const provider: KnownProvider = guessProvider(event) ?? 'github'
 * ```
 */
export type KnownProvider = keyof typeof SCHEMES

/** The senders that ask a new address to prove that it knows the secret. */
export const CHALLENGERS = ['zoom', 'x'] as const
export type Challenger = (typeof CHALLENGERS)[number]

/**
 * The only texts that a challenge has signed. A signed event has signs that are not among these, so answers to
 * challenges never sign one.
 */
const CHALLENGE_TOKEN = /^[A-Za-z0-9+/=_-]{1,128}$/

/** The JSON that proves to this sender that its secret is known here; null if the request does not ask for it. */
export async function answerChallenge(
  provider: Challenger,
  request: { query: string; body: Uint8Array },
  secret: string,
): Promise<string | null> {
  const { challenge }: Scheme = SCHEMES[provider]
  const json = () => parseStrictJsonBytes(request.body)
  const token = challenge?.tokenIn({ json, query: new URLSearchParams(request.query) })
  if (typeof token !== 'string' || !CHALLENGE_TOKEN.test(token)) return null
  return JSON.stringify(challenge?.answer(token, await mac(utf8(token), utf8(secret))))
}

/**
 * The provider that signs with a header which this event has, or null.
 *
 * ```ts
 * const provider = guessProvider(event) ?? 'github'
 * ```
 */
export function guessProvider({ headers }: Pick<SignedRequest, 'headers'>): KnownProvider | null {
  const hasAny = ({ knownBy }: Scheme): boolean =>
    knownBy.some((name) => headers.some((header) => hasName(header, name)))
  const known = Object.entries(SCHEMES).find(([, scheme]) => hasAny(scheme))
  return (known?.[0] ?? null) as KnownProvider | null
}
