/** Judges the time in a signature by the time at which its request came. */
import { type Finding, failed } from './verdict.ts'

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
