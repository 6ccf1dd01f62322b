/**
 * Slack: X-Slack-Signature is `v0=` and the HMAC-SHA256 of `v0:timestamp:body` in hex.
 * https://docs.slack.dev/authentication/verifying-requests-from-slack
 */
import { concat, utf8 } from '../../lib/bytes.ts'
import { isAmong, mac, sha256Hex } from './mac.ts'
import { seconds, TIMESTAMP_FORM, tooNew, tooOld } from './timestamp.ts'
import {
  type Finding,
  failed,
  malformed,
  mismatch,
  onlyHeader,
  type SignedRequest,
  valid,
} from './verdict.ts'

export const SLACK_HEADER = 'X-Slack-Signature'
const TIMESTAMP = 'X-Slack-Request-Timestamp'
const PREFIX = 'v0='

export async function checkSlack(
  request: SignedRequest,
  secret: string,
  toleranceSeconds: number,
): Promise<Finding> {
  const header = onlyHeader(request, SLACK_HEADER)
  if ('failed' in header) return header.failed
  const timestamp = onlyHeader(request, TIMESTAMP)
  if ('failed' in timestamp) return timestamp.failed
  const { value } = header
  const signature = value.startsWith(PREFIX) ? sha256Hex(value.slice(PREFIX.length)) : null
  if (!signature) return malformed(SLACK_HEADER, `${PREFIX} and 64 digits of lower-case hex`)
  const signedAt = seconds(timestamp.value)
  if (signedAt === null) return malformed(TIMESTAMP, TIMESTAMP_FORM)
  if (/^xox[a-z]-|^xapp-/.test(secret)) {
    return failed(
      'secret malformed',
      'This is a token. Requests are signed with the signing secret of the app.',
    )
  }
  const signed = concat(utf8(`v0:${timestamp.value}:`), request.body)
  if (!isAmong(await mac(signed, utf8(secret)), [signature])) {
    return mismatch(SLACK_HEADER, 'the timestamp or the body')
  }
  const freshness = { receivedAtMs: request.receivedAtMs, toleranceSeconds, header: TIMESTAMP }
  return tooOld(signedAt, freshness) ?? tooNew(signedAt, freshness) ?? valid()
}
