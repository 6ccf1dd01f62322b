/**
 * Answers kept to be repeated, for payers whose connection was lost: where the project switches it
 * on, and never by running a handler again.
 */
import { createHash } from 'node:crypto'
import { HOP_BY_HOP } from '../lib/hop-by-hop.ts'

/** Of one answer. A longer one is a download, not the answer of an API. */
export const MAX_STORED_BYTES = 64 * 1024
/** Of all together, and how many. */
const MAX_ALL_STORED_BYTES = 16 * 1024 * 1024
const MAX_STORED = 1_000
/** Losing a connection three times more is bad luck; beyond that somebody reads it as a page. */
const MAX_REPEATS = 3

/** Headers of one connection, of another visitor's session, or of a part of the body. */
const DROPPED = new Set<string>([
  ...HOP_BY_HOP,
  'set-cookie',
  'accept-ranges',
  'content-length',
  'content-range',
  'date',
])

/** Header values by lower-case name. */
export type AnswerHeaders = Record<string, string | string[]>
export type Answer = { status: number; headers: AnswerHeaders; body: Uint8Array }

/** Whose answer it is: the intent, the request that it was for, and who sent that. */
export type AnswerOf = {
  intent: string
  requestDigest: string
  cookie: string | null
  authorization: string | null
}

export type StoredAnswers = {
  /** Keeps an answer until then, if it is one to keep. */
  keep(of: AnswerOf, answer: Answer, untilMs: number): void
  /** The answer, if it is still there; so often and no more. */
  take(of: AnswerOf): Answer | null
}

export function createStoredAnswers(
  now: () => number,
  { maxAnswers = MAX_STORED, maxBytes = MAX_ALL_STORED_BYTES } = {},
): StoredAnswers {
  const stored = new Map<string, { answer: Answer; untilMs: number; repeats: number }>()
  let bytes = 0

  function drop(key: string): void {
    bytes -= stored.get(key)?.answer.body.length ?? 0
    stored.delete(key)
  }

  return {
    keep(of, { status, headers, body }, untilMs) {
      if (!isKept(status) || body.length > MAX_STORED_BYTES) return
      const key = keyOf(of)
      drop(key)
      stored.set(key, {
        answer: { status, headers: keptHeaders(headers), body },
        untilMs,
        repeats: 0,
      })
      bytes += body.length
      for (const [old, { untilMs: end }] of stored) {
        if (stored.size <= maxAnswers && bytes <= maxBytes && end > now()) break
        drop(old)
      }
    },

    take(of) {
      const key = keyOf(of)
      const found = stored.get(key)
      if (!found) return null
      found.repeats++
      const isOver = found.untilMs <= now()
      if (isOver || found.repeats >= MAX_REPEATS) drop(key)
      return isOver ? null : found.answer
    },
  }
}

/** A success that is whole: 206 is a part, for whoever asked for that part. */
export function isKept(status: number): boolean {
  return status >= 200 && status < 300 && status !== 206
}

function keptHeaders(headers: AnswerHeaders): AnswerHeaders {
  const named = [headers.connection ?? []].flat().join(',').toLowerCase().split(',')
  const dropped = new Set([...DROPPED, ...named.map((name) => name.trim())])
  const kept = Object.entries(headers).filter(([name]) => !dropped.has(name))
  return { ...Object.fromEntries(kept), 'cache-control': 'private, no-store' }
}

/** As they were received: whoever sends another cookie may be somebody else. */
function keyOf({ intent, requestDigest, cookie, authorization }: AnswerOf): string {
  const sender = createHash('sha256')
    .update(JSON.stringify([cookie, authorization]))
    .digest('hex')
  return `${intent} ${requestDigest} ${sender}`
}
