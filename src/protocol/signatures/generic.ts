/** Any other sender that puts an HMAC of the body into a header. */
import { base64Bytes, hexBytes, utf8 } from '../../lib/bytes.ts'
import { HMAC_ALGORITHMS, type HmacAlgorithm, isAmong, mac } from './mac.ts'
import {
  type Finding,
  malformed,
  mismatch,
  onlyHeader,
  type SignedRequest,
  valid,
} from './verdict.ts'

/**
 * How a sender signs that has no rules of its own here: with an HMAC of the body in a header.
 *
 * ```ts
 * const scheme: HmacScheme = { header: 'X-Signature', algorithm: 'sha512', encoding: 'base64' }
 * ```
 */
export type HmacScheme = {
  /** The name of the header, in any case. */
  header: string
  /** The hash function. Default `sha256`. */
  algorithm?: HmacAlgorithm
  /** How the bytes are written. Default `hex`; base64 in either alphabet, padded or not. */
  encoding?: 'hex' | 'base64'
  /** What stands before the signature, such as `sha256=`. Default: nothing. */
  prefix?: string
}

export async function checkHmac(
  request: SignedRequest,
  secret: string,
  { header: name, algorithm = 'sha256', encoding = 'hex', prefix = '' }: HmacScheme,
): Promise<Finding> {
  const header = onlyHeader(request, name)
  if ('failed' in header) return header.failed
  const { value } = header
  const text = value.startsWith(prefix) ? value.slice(prefix.length) : null
  const signature = text === null ? null : encoding === 'hex' ? hexBytes(text) : base64Bytes(text)
  const { bytes } = HMAC_ALGORITHMS[algorithm]
  if (signature?.length !== bytes) {
    return malformed(name, `${prefix === '' ? '' : `${prefix} and `}${bytes} bytes in ${encoding}`)
  }
  const expected = await mac(request.body, utf8(secret), algorithm)
  return isAmong(expected, [signature]) ? valid() : mismatch(name)
}
