/**
 * The signing side of Standard Webhooks: id, timestamp and body.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
import { randomBytes } from 'node:crypto'
import { base64, base64Bytes, utf8 } from '../lib/bytes.ts'
import { hmacSha256 } from './hmac.ts'

const SECRET_PREFIX = 'whsec_'
/** The specification allows 24 to 64. */
const SECRET_BYTES = 32

/** A secret for one receiver: `whsec_` and 32 random bytes in base64. */
export const newWebhookSecret = (): string => SECRET_PREFIX + base64(randomBytes(SECRET_BYTES))

/**
 * The three headers of a message.
 * @param message.id the same for every attempt, so that a receiver knows a repeat.
 * @param message.sentAt of this attempt, in unix milliseconds.
 */
export function webhookHeaders(
  { id, sentAt, body }: { id: string; sentAt: number; body: string },
  secret: string,
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const timestamp = String(Math.floor(sentAt / 1000))
  const signed = utf8(`${id}.${timestamp}.${body}`)
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${base64(hmacSha256(keyOf(secret), signed))}`,
  }
}

function keyOf(secret: string): Uint8Array {
  const bytes = secret.startsWith(SECRET_PREFIX) && base64Bytes(secret.slice(SECRET_PREFIX.length))
  // An empty key would sign what everybody can sign.
  if (!bytes || bytes.length < 24) throw new Error('the secret of a webhook is malformed')
  return bytes
}
