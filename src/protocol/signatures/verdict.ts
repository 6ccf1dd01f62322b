/** What a check of a signature reads, and what it says of the signature and of its time. */

/** A request as it came: header values have a character per byte, and times are unix milliseconds. */
export type SignedRequest = {
  headers: readonly { name: string; value: string }[]
  body: Uint8Array<ArrayBuffer>
  receivedAtMs: number
}

/**
 * The rule that a signature failed.
 *
 * - `header missing`, `header malformed`: the sender did not sign, or not in this form.
 * - `timestamp too old`, `timestamp too new`: the signature matches, but it was made at another time
 *   than the request came.
 * - `secret malformed`: the secret cannot be one of this provider.
 * - `signature mismatch`: the secret is wrong, or something that is signed was changed.
 *
 * ```ts
 * const rule: SignatureRule = 'signature mismatch'
 * ```
 */
export type SignatureRule =
  | 'header missing'
  | 'header malformed'
  | 'timestamp too old'
  | 'timestamp too new'
  | 'secret malformed'
  | 'signature mismatch'

/** A verdict, before it says which provider's rules were used. */
export type Finding =
  | { valid: true; sentence: string }
  | { valid: false; rule: SignatureRule; header: string | null; sentence: string }

/** A header, in the spelling of the provider's documentation, or why it cannot be used. */
export type HeaderValue = { value: string } | { failed: Finding }

export function valid(what = 'the body'): Finding {
  return { valid: true, sentence: `The signature is valid: it fits ${what} and this secret.` }
}

export function failed(
  rule: SignatureRule,
  sentence: string,
  header: string | null = null,
): Finding {
  return { valid: false, rule, header, sentence }
}

export const malformed = (header: string, form: string): Finding =>
  failed('header malformed', `${header} must be ${form}.`, header)

export const mismatch = (header: string, what = 'the body'): Finding =>
  failed(
    'signature mismatch',
    `The signature does not match: the secret is another one, or ${what} changed after it was signed.`,
    header,
  )

/** The one header with this name. A receiver would not know which of two is meant. */
export function onlyHeader({ headers }: SignedRequest, name: string): HeaderValue {
  const [first, second] = headers.filter((header) => hasName(header, name))
  if (first === undefined) {
    return { failed: failed('header missing', `The request has no ${name} header.`, name) }
  }
  if (second !== undefined) return { failed: malformed(name, 'one header, and came twice') }
  return { value: first.value.trim() }
}

export const hasName = (header: { name: string }, name: string): boolean =>
  header.name.toLowerCase() === name.toLowerCase()

/** Unix seconds without a leading zero, in at most the digits of a safe integer. */
const SECONDS = /^(?:0|[1-9]\d{0,14})$/

/** The unix seconds, or null. */
export const seconds = (text: string): number | null => (SECONDS.test(text) ? Number(text) : null)

export const TIMESTAMP_FORM = 'a time in unix seconds'

export type Freshness = {
  receivedAtMs: number
  toleranceSeconds: number
  /** Where the time stands, for the verdict. */
  header: string
}

/** Why the signature is too old, or null. */
export function tooOld(signedAt: number, freshness: Freshness): Finding | null {
  const age = Math.floor(freshness.receivedAtMs / 1000) - signedAt
  if (age <= freshness.toleranceSeconds) return null
  return misdated('timestamp too old', { difference: age, than: 'older' }, freshness)
}

/** Why the signature is too new, or null. */
export function tooNew(signedAt: number, freshness: Freshness): Finding | null {
  const lead = signedAt - Math.floor(freshness.receivedAtMs / 1000)
  if (lead <= freshness.toleranceSeconds) return null
  return misdated('timestamp too new', { difference: lead, than: 'newer' }, freshness)
}

function misdated(
  rule: 'timestamp too old' | 'timestamp too new',
  { difference, than }: { difference: number; than: 'older' | 'newer' },
  { header, toleranceSeconds }: Freshness,
): Finding {
  // Two numbers that differ must not look equal.
  const isClose = span(difference) === span(toleranceSeconds)
  const told = isClose ? (seconds: number): string => `${seconds} s` : span
  return failed(
    rule,
    `The signature matches, but its timestamp is ${told(difference)} ${than} than the request. ${told(toleranceSeconds)} is allowed.`,
    header,
  )
}

function span(total: number): string {
  if (total < 120) return `${total} s`
  if (total < 2 * 3600) return `${Math.floor(total / 60)} min`
  if (total < 2 * 86_400) return `${Math.floor(total / 3600)} h`
  return `${Math.floor(total / 86_400)} days`
}
