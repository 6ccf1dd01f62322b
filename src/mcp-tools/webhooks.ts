/** Webhooks as a result shows them. What their senders wrote is text of strangers, and bounded over all of them. */
import { isObject } from '../lib/json.ts'
import type { Webhook } from './inbox.ts'
import { DEFAULT_TEXT_BYTES, escapeSteering, strangerText } from './stranger.ts'

/** The texts of strangers in one result. A page ends early before it has more. */
const MAX_RESULT_TEXT_BYTES = 256 * 1024
export const MAX_WEBHOOKS = 50
/** What the service itself writes into an event is far shorter. */
const MAX_SERVICE_CHARS = 128

/** As many of the events as fit into one result, but at least one. */
export function shown(
  events: readonly Record<string, unknown>[],
  maxTextBytes = DEFAULT_TEXT_BYTES,
): { webhooks: Webhook[]; isCut: boolean } {
  const webhooks: Webhook[] = []
  let bytes = 0
  for (const event of events.filter(isObject)) {
    const webhook = webhookOf(event, maxTextBytes)
    bytes += [webhook.path, webhook.query, webhook.headers, webhook.body].reduce(
      (sum, some) => sum + (some ? Buffer.byteLength(some.untrustedText) : 0),
      0,
    )
    const isFull = bytes > MAX_RESULT_TEXT_BYTES || webhooks.length === MAX_WEBHOOKS
    if (isFull && webhooks.length > 0) return { webhooks, isCut: true }
    webhooks.push(webhook)
  }
  return { webhooks, isCut: false }
}

function webhookOf(event: Record<string, unknown>, maxTextBytes: number): Webhook {
  const headers = Array.isArray(event.headers) ? event.headers.filter(isObject) : []
  const stranger = (value: string) => strangerText(value, maxTextBytes)
  return {
    id: own(event.id),
    sequence: Number(event.sequence),
    receivedAt: own(event.receivedAt),
    access: event.access === 'authenticated' ? 'authenticated' : 'public',
    method: own(event.method),
    path: stranger(text(event.path)),
    query: stranger(text(event.query)),
    headers: stranger(headers.map(({ name, value }) => `${text(name)}: ${text(value)}`).join('\n')),
    body: event.bodyEncoding === 'utf8' ? stranger(text(event.body)) : null,
    bodyBytes: Number(event.bodyBytes),
    bodySha256: own(event.bodySha256),
    sourceIp: own(event.sourceIp),
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** What the service says. To `mayfly mcp`, it is a stranger too. */
const own = (value: unknown): string => escapeSteering(text(value).slice(0, MAX_SERVICE_CHARS))
