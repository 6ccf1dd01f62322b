/**
 * Stores answers for payers whose connection was lost, if the project enables it. A repeat gets the
 * stored answer; the handler does not run again.
 */
import { createHash } from 'node:crypto'
import { HOP_BY_HOP } from '../lib/hop-by-hop.ts'

/** The maximum size of one stored answer. API answers fit; downloads are not stored. */
export const MAX_STORED_BYTES = 64 * 1024
/** The maximum size of all stored answers, and their number. */
const MAX_ALL_STORED_BYTES = 16 * 1024 * 1024
const MAX_STORED = 1_000
/** Enough for lost connections, and too few to use a paid answer like a free page. */
const MAX_REPEATS = 3

/** Headers that belong to one connection, one session, or a part of the body. */
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

/** What an answer belongs to: the intent, its request, and the sender. */
export type AnswerOf = {
  intent: string
  requestDigest: string
  cookie: string | null
  authorization: string | null
}

export type StoredAnswers = {
  /** Stores an answer until the given time, if it can be stored. */
  keep(of: AnswerOf, answer: Answer, untilMs: number): void
  /** The stored answer, or null. Each can be taken a limited number of times. */
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

/** Whether answers with this status are stored: success, except 206, which is only a part. */
export function isKept(status: number): boolean {
  return status >= 200 && status < 300 && status !== 206
}

function keptHeaders(headers: AnswerHeaders): AnswerHeaders {
  const named = [headers.connection ?? []].flat().join(',').toLowerCase().split(',')
  const dropped = new Set([...DROPPED, ...named.map((name) => name.trim())])
  const kept = Object.entries(headers).filter(([name]) => !dropped.has(name))
  return { ...Object.fromEntries(kept), 'cache-control': 'private, no-store' }
}

/** The key includes cookie and authorization: another cookie may mean another visitor. */
function keyOf({ intent, requestDigest, cookie, authorization }: AnswerOf): string {
  const sender = createHash('sha256')
    .update(JSON.stringify([cookie, authorization]))
    .digest('hex')
  return `${intent} ${requestDigest} ${sender}`
}
