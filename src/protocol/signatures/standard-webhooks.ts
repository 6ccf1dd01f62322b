/**
 * Standard Webhooks: webhook-signature has signatures with a space between, each `v1,` and the HMAC-SHA256 of
 * `id.timestamp.body` in base64. The secret is base64 after `whsec_`. Svix and its customers send the same as svix-id,
 * svix-timestamp and svix-signature.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
import { base64Bytes, concat, utf8 } from '../../lib/bytes.ts'
import { isAmong, mac, sha256Base64 } from './mac.ts'
import { seconds, TIMESTAMP_FORM, tooNew, tooOld } from './timestamp.ts'
import {
  type Finding,
  failed,
  hasName,
  malformed,
  mismatch,
  onlyHeader,
  type SignedRequest,
  valid,
} from './verdict.ts'

export const STANDARD_HEADER = 'webhook-signature'
export const SVIX_HEADER = 'svix-signature'
const SECRET_PREFIX = 'whsec_'

export async function checkStandardWebhooks(
  request: SignedRequest,
  secret: string,
  toleranceSeconds: number,
): Promise<Finding> {
  const isSvix =
    request.headers.some((header) => hasName(header, SVIX_HEADER)) &&
    !request.headers.some((header) => hasName(header, STANDARD_HEADER))
  const named = isSvix ? 'svix' : 'webhook'
  const header = onlyHeader(request, `${named}-signature`)
  if ('failed' in header) return header.failed
  const id = onlyHeader(request, `${named}-id`)
  if ('failed' in id) return id.failed
  const timestamp = onlyHeader(request, `${named}-timestamp`)
  if ('failed' in timestamp) return timestamp.failed
  const signatures = parseSignatures(header.value)
  if (signatures.length === 0) return unsigned(`${named}-signature`, header.value)
  const signedAt = seconds(timestamp.value)
  if (signedAt === null) return malformed(`${named}-timestamp`, TIMESTAMP_FORM)
  const key = keyOf(secret)
  if (!key) {
    return failed('secret malformed', 'The secret must be base64, usually after whsec_.')
  }
  // Header values have a character per byte; the id is ASCII where the sender keeps to the specification.
  const signed = concat(utf8(`${id.value}.${timestamp.value}.`), request.body)
  if (!isAmong(await mac(signed, key), signatures)) {
    return mismatch(`${named}-signature`, 'the id, the timestamp or the body')
  }
  const freshness = {
    receivedAtMs: request.receivedAtMs,
    toleranceSeconds,
    header: `${named}-timestamp`,
  }
  return tooOld(signedAt, freshness) ?? tooNew(signedAt, freshness) ?? valid()
}

/** The signatures of the one scheme with a shared secret. */
function parseSignatures(value: string): Uint8Array[] {
  return value
    .split(' ')
    .filter((item) => item.startsWith('v1,'))
    .map((item) => sha256Base64(item.slice('v1,'.length)))
    .filter((signature) => signature !== null)
}

function unsigned(header: string, value: string): Finding {
  const isAsymmetric = value.split(' ').some((item) => item.startsWith('v1a,'))
  return isAsymmetric
    ? failed(
        'header malformed',
        `${header} has only v1a signatures, which need the public key of the sender and no secret.`,
        header,
      )
    : malformed(header, 'v1, and 32 bytes in base64, with a space between several')
}

function keyOf(secret: string): Uint8Array<ArrayBuffer> | null {
  const bytes = base64Bytes(
    secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret,
  )
  return bytes && bytes.length > 0 ? bytes : null
}
