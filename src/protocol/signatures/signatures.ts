/** Checks the signatures of webhooks by the rules of their senders. */
import { checkHmac, type HmacScheme } from './generic.ts'
import { checkGithub, GITHUB_HEADER } from './github.ts'
import { checkShopify, SHOPIFY_HEADER } from './shopify.ts'
import { checkSlack, SLACK_HEADER } from './slack.ts'
import { checkStandardWebhooks, STANDARD_HEADER, SVIX_HEADER } from './standard-webhooks.ts'
import { checkStripe, STRIPE_HEADER } from './stripe.ts'
import { type Finding, failed, hasName, type SignedRequest } from './verdict.ts'

export const SIGNATURE_PROVIDERS = [
  'github',
  'stripe',
  'slack',
  'shopify',
  'standard-webhooks',
  'hmac',
] as const
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
  const finding = await check(request, secret, { ...rules, toleranceSeconds })
  const trimmed = secret.trim()
  if (finding.valid || trimmed === secret || trimmed === '') return finding
  const { valid: isRight } = await check(request, trimmed, { ...rules, toleranceSeconds })
  return isRight
    ? failed('secret malformed', 'The signature matches without the space around the secret.')
    : finding
}

function check(
  request: SignedRequest,
  secret: string,
  rules: SignatureRules & { toleranceSeconds: number },
): Promise<Finding> {
  switch (rules.provider) {
    case 'github':
      return checkGithub(request, secret)
    case 'stripe':
      return checkStripe(request, secret, rules.toleranceSeconds)
    case 'slack':
      return checkSlack(request, secret, rules.toleranceSeconds)
    case 'shopify':
      return checkShopify(request, secret)
    case 'standard-webhooks':
      return checkStandardWebhooks(request, secret, rules.toleranceSeconds)
    case 'hmac':
      return checkHmac(request, secret, rules)
  }
}

/**
 * A provider whose headers tell who it is.
 *
 * ```ts
 * const provider: KnownProvider = guessProvider(event) ?? 'github'
 * ```
 */
export type KnownProvider = Exclude<SignatureProvider, 'hmac'>

/** The header by which each provider is known. */
const KNOWN_BY: readonly (readonly [string, KnownProvider])[] = [
  [STRIPE_HEADER, 'stripe'],
  [SLACK_HEADER, 'slack'],
  [SHOPIFY_HEADER, 'shopify'],
  [STANDARD_HEADER, 'standard-webhooks'],
  [SVIX_HEADER, 'standard-webhooks'],
  [GITHUB_HEADER, 'github'],
]

/** The provider that signs with a header of this request, or null. */
export function guessSignatureProvider({
  headers,
}: Pick<SignedRequest, 'headers'>): KnownProvider | null {
  const known = KNOWN_BY.find(([name]) => headers.some((header) => hasName(header, name)))
  return known?.[1] ?? null
}
