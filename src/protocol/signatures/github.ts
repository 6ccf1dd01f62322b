/**
 * GitHub: X-Hub-Signature-256 is `sha256=` and the HMAC-SHA256 of the body in hex. Meta, Gitea and others sign the
 * same way. https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
 */
import { utf8 } from '../../lib/bytes.ts'
import { isAmong, mac, sha256Hex } from './mac.ts'
import {
  type Finding,
  malformed,
  mismatch,
  onlyHeader,
  type SignedRequest,
  valid,
} from './verdict.ts'

export const GITHUB_HEADER = 'X-Hub-Signature-256'
const PREFIX = 'sha256='

export async function checkGithub(request: SignedRequest, secret: string): Promise<Finding> {
  const header = onlyHeader(request, GITHUB_HEADER)
  if ('failed' in header) return header.failed
  const { value } = header
  const signature = value.startsWith(PREFIX) ? sha256Hex(value.slice(PREFIX.length)) : null
  if (!signature) return malformed(GITHUB_HEADER, `${PREFIX} and 64 digits of lower-case hex`)
  const expected = await mac(request.body, utf8(secret))
  return isAmong(expected, [signature]) ? valid() : mismatch(GITHUB_HEADER)
}
