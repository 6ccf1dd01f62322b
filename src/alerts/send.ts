/** One attempt: a message to a destination, and what became of it. */

import { type AlertFormat, formatted, type Message } from '../lib/alert-formats.ts'
import { webhookHeaders } from '../protocol/webhook-signing.ts'
import { type Secrets, seal, unseal } from '../secrets/secrets.ts'
import type { Outbound } from './outbound.ts'
import { OutboundError } from './outbound-rules.ts'
import type { Outcome } from './store.ts'

/** Marks what the service sends, so that two services never keep each other busy for ever. */
const MARK = 'mayfly-alert'

/** A destination with its secrets in the clear. */
export type Target = {
  format: AlertFormat
  /** The URL, or an inbox as `inboxText` writes it. */
  target: string
  /** What signs. */
  secret: string
  ownerId: string
}

export type Attempt = {
  outcome: Outcome
  /** 410: the receiver wants no more. */
  isGone: boolean
  retryAfterMs: number | null
  /** Whether the answer has a text in its body or in one of its headers. */
  has(text: string): boolean
}

/** An inbox, and the hash in hex of the token that was shown for it: once that is replaced, it lets nothing in. */
export type ProvenInbox = { inboxId: string; tokenHash: string }

export const inboxText = ({ inboxId, tokenHash }: ProvenInbox): string => `${inboxId} ${tokenHash}`

export function readInbox(text: string): ProvenInbox {
  const [inboxId = '', tokenHash = ''] = text.split(' ')
  return { inboxId, tokenHash }
}

/** What an inbox is given: names and values of headers alternate. */
type InboxDelivery = { headers: string[]; body: Buffer }

/** The inboxes of this service, as a destination needs them. */
export type Inboxes = {
  /** Whether this token may send to the inbox. */
  admits(inboxId: string, ingestToken: string): Promise<boolean>
  /** Stores a request as one with the token that was shown, unless the inbox or one of its limits refuses it. */
  deliver(to: ProvenInbox, delivery: InboxDelivery): Promise<boolean>
}

export type Send = (target: Target, message: Message) => Promise<Attempt>

export function createSend({
  out,
  inboxes,
  now,
}: {
  out: Outbound | null
  inboxes: () => Inboxes | null
  now: () => number
}): Send {
  async function toUrl(target: Target, message: Message): Promise<Attempt> {
    if (!out) return { ...NOTHING, outcome: 'failed' }
    const { url, body } = formatted(target.format, new URL(target.target), message)
    try {
      const answer = await out.send({
        url: url as URL,
        method: 'POST',
        body,
        from: target.ownerId,
        headers: headersOf(target, message, body),
      })
      const { status, headers } = answer
      return {
        outcome: outcomeOf(status),
        isGone: status === 410,
        retryAfterMs:
          status === 429 || status === 503 ? retryAfterMs(headers['retry-after'], now()) : null,
        has: (text) =>
          Object.values(headers).flat().includes(text) || Buffer.from(answer.body).includes(text),
      }
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error
      return { ...NOTHING, outcome: error.status === null ? 'failed' : outcomeOf(error.status) }
    }
  }

  async function toInbox(target: Target, message: Message): Promise<Attempt> {
    const { body } = formatted('inbox', null, message)
    const delivery = {
      headers: Object.entries(headersOf(target, message, body)).flat(),
      body: Buffer.from(body, 'utf8'),
    }
    const isStored = await inboxes()?.deliver(readInbox(target.target), delivery)
    return { ...NOTHING, outcome: isStored ? '2xx' : '4xx' }
  }

  return (target, message) =>
    target.format === 'inbox' ? toInbox(target, message) : toUrl(target, message)

  function headersOf(
    { secret }: Target,
    { id, type }: Message,
    body: string,
  ): Record<string, string> {
    return {
      'content-type': 'application/json',
      'user-agent': 'Mayfly',
      [MARK]: type,
      ...webhookHeaders({ id, sentAt: now(), body }, secret),
    }
  }
}

/** What an attempt without an answer says. */
export const NOTHING = { isGone: false, retryAfterMs: null, has: () => false }

/** `Date.parse` reads much more, such as a minus sign as a month. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/** The milliseconds of a Retry-After (RFC 9110 §10.2.3), or null. */
export function retryAfterMs(value: unknown, now: number): number | null {
  if (typeof value !== 'string') return null
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const until = HTTP_DATE.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(until) ? null : Math.max(0, until - now)
}

function outcomeOf(status: number): Outcome {
  if (status >= 200 && status < 300) return '2xx'
  if (status >= 400 && status < 500) return '4xx'
  return status >= 500 && status < 600 ? '5xx' : 'failed'
}

/** What a destination keeps secret in the store: its URL and what signs. Encrypted under the service's secret. */
export type Sealed = ReturnType<typeof createSealed>

export function createSealed(secrets: Secrets) {
  const keys = secrets.keys('alert destination')
  return {
    seal: (plain: string, destinationId: string): Buffer =>
      seal(keys[0], Buffer.from(plain, 'utf8'), destinationId),

    /** The text, or null if no configured secret opens it. */
    open: (sealed: Uint8Array, destinationId: string): string | null =>
      unseal(keys, sealed, destinationId)?.plain.toString('utf8') ?? null,
  }
}
