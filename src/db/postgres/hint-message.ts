/**
 * The messages between instances: which topics changed, and which topics an instance listens to, so that a
 * change without listeners costs no message. Topics are hashed, so that no ids get into the database's log.
 */
import { hash } from 'node:crypto'

/** Topics per payload: PostgreSQL accepts payloads below 8000 bytes. */
const PAYLOAD_TOPICS = 400
/** Topics are sorted into this many kinds. Two topics of one kind cost a needless message at most. */
const INTEREST_BITS = 4096

/** One payload. A missing field has not changed. */
export type Message = {
  /** The sending instance. */
  from: string
  topics?: string[]
  /** Anything may have changed. */
  all?: true
  /** The kinds of topics with a listener at the sender, one bit each, in base64. */
  interest?: string
  /** Asks every instance to send its interest. */
  ask?: true
}

/** The topic as others see it. */
export const topicHash = (topic: string): string =>
  hash('sha256', `mayfly/hint/${topic}`, 'base64url').slice(0, 16)

/** The payloads that carry a message, as many as its topics need. */
export function payloads(message: Message): string[] {
  const { topics = [], ...rest } = message
  const parts: string[] = []
  for (let i = 0; i < topics.length; i += PAYLOAD_TOPICS) {
    parts.push(JSON.stringify({ from: message.from, topics: topics.slice(i, i + PAYLOAD_TOPICS) }))
  }
  if (Object.keys(rest).length > 1) parts.push(JSON.stringify(rest))
  return parts
}

/** Null for a payload that no instance of this version sends. */
export function readMessage(payload: string): Message | null {
  try {
    const message = JSON.parse(payload) as Record<string, unknown> | null
    if (typeof message !== 'object' || typeof message?.from !== 'string') return null
    const { from, topics, all, interest, ask } = message
    return {
      from,
      ...(Array.isArray(topics) ? { topics: topics.map(String) } : {}),
      ...(all === true ? { all } : {}),
      ...(typeof interest === 'string' ? { interest } : {}),
      ...(ask === true ? { ask } : {}),
    }
  } catch {
    return null
  }
}

/** Kinds of topics, one bit each. */
export type Interest = Uint8Array

export const noInterest = (): Interest => new Uint8Array(INTEREST_BITS / 8)

export function interestIn(topicHashes: Iterable<string>): Interest {
  const interest = noInterest()
  for (const topic of topicHashes) {
    const kind = kindOf(topic)
    interest[kind >> 3] = (interest[kind >> 3] ?? 0) | (1 << (kind & 7))
  }
  return interest
}

export function isInterested(interest: Interest, topicHash: string): boolean {
  const kind = kindOf(topicHash)
  return ((interest[kind >> 3] ?? 0) & (1 << (kind & 7))) !== 0
}

/** A different length comes from another version: that instance gets all topics. */
export function readInterest(text: string): Interest {
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === INTEREST_BITS / 8 ? new Uint8Array(bytes) : noInterest().fill(0xff)
}

export const interestText = (interest: Interest): string => Buffer.from(interest).toString('base64')

/** The first two characters of a base64url hash are twelve evenly distributed bits. */
function kindOf(topicHash: string): number {
  return (sixBits(topicHash.charCodeAt(0)) << 6) | sixBits(topicHash.charCodeAt(1))
}

function sixBits(code: number): number {
  if (code >= 97) return code - 97 + 26
  if (code === 95) return 63
  if (code >= 65) return code - 65
  if (code >= 48) return code - 48 + 52
  return 62
}
