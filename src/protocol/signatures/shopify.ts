/**
 * Shopify: X-Shopify-Hmac-Sha256 is the HMAC-SHA256 of the body in base64, under the app's client secret.
 * https://shopify.dev/docs/apps/build/webhooks/subscribe/https
 */
import { utf8 } from '../../lib/bytes.ts'
import { isAmong, mac, sha256Base64 } from './mac.ts'
import {
  type Finding,
  failed,
  malformed,
  mismatch,
  onlyHeader,
  type SignedRequest,
  valid,
} from './verdict.ts'

export const SHOPIFY_HEADER = 'X-Shopify-Hmac-Sha256'

export async function checkShopify(request: SignedRequest, secret: string): Promise<Finding> {
  const header = onlyHeader(request, SHOPIFY_HEADER)
  if ('failed' in header) return header.failed
  const signature = sha256Base64(header.value)
  if (!signature) return malformed(SHOPIFY_HEADER, '32 bytes in base64')
  if (/^shp(?:at|ca|pa|ua)_/.test(secret)) {
    return failed(
      'secret malformed',
      'This is an access token. Webhooks are signed with the client secret of the app.',
    )
  }
  const expected = await mac(request.body, utf8(secret))
  return isAmong(expected, [signature]) ? valid() : mismatch(SHOPIFY_HEADER)
}
