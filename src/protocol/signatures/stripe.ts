/**
 * Stripe: Stripe-Signature is `t=timestamp,v1=signature`, perhaps with several signatures. Each is the HMAC-SHA256 of
 * `timestamp.body` in hex, under the endpoint's secret, all of it with `whsec_`.
 * https://docs.stripe.com/webhooks/signature
 */
import { concat, utf8 } from '../../lib/bytes.ts'
import { isAmong, mac, sha256Hex } from './mac.ts'
import { seconds, tooOld } from './timestamp.ts'
import {
  type Finding,
  failed,
  malformed,
  mismatch,
  onlyHeader,
  type SignedRequest,
  valid,
} from './verdict.ts'

export const STRIPE_HEADER = 'Stripe-Signature'
const FORM =
  't=, a time in unix seconds, and v1= with 64 digits of lower-case hex, with a comma between'

export async function checkStripe(
  request: SignedRequest,
  secret: string,
  toleranceSeconds: number,
): Promise<Finding> {
  const header = onlyHeader(request, STRIPE_HEADER)
  if ('failed' in header) return header.failed
  const parsed = parseStripe(header.value)
  if (!parsed) return malformed(STRIPE_HEADER, FORM)
  if (/^(?:sk|pk|rk)_/.test(secret)) {
    return failed(
      'secret malformed',
      'This is an API key. Webhooks are signed with the secret of the endpoint, which begins with whsec_.',
    )
  }
  const signed = concat(utf8(`${parsed.timestamp}.`), request.body)
  if (!isAmong(await mac(signed, utf8(secret)), parsed.signatures)) {
    return mismatch(STRIPE_HEADER, 'the timestamp or the body')
  }
  const { receivedAtMs } = request
  // Stripe's libraries accept a timestamp from the future.
  return (
    tooOld(parsed.signedAt, { receivedAtMs, toleranceSeconds, header: STRIPE_HEADER }) ?? valid()
  )
}

/** Skips signatures of other schemes, as Stripe's documentation asks. */
function parseStripe(
  value: string,
): { timestamp: string; signedAt: number; signatures: Uint8Array[] } | null {
  const items = value.split(',').map((item) => {
    const at = item.indexOf('=')
    return [item.slice(0, Math.max(at, 0)), item.slice(at + 1)] as const
  })
  const timestamps = items.filter(([name]) => name === 't')
  const [, timestamp = ''] = timestamps[0] ?? []
  const signedAt = seconds(timestamp)
  const signatures = items
    .filter(([name]) => name === 'v1')
    .map(([, text]) => sha256Hex(text))
    .filter((signature) => signature !== null)
  if (timestamps.length !== 1 || signedAt === null || signatures.length === 0) return null
  return { timestamp, signedAt, signatures }
}
