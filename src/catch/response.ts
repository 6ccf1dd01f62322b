/** The answer that an owner has chosen for the requests to an inbox. Without one, each is answered with 204. */
import { invalid } from '../http/errors.ts'
import { isObject, parseStrictJsonBytes } from '../lib/json.ts'
import { answerChallenge } from '../protocol/signatures/signatures.ts'
import { type Secrets, seal, unseal } from '../secrets/secrets.ts'
import type { CatchResponse, CatchResponseShown } from './schema.ts'
import type { InboxRow, StoredResponse } from './store.ts'

/** The longest body of an answer: enough for a sender, and too little to host anything. */
const MAX_BODY_BYTES = 4 * 1024
/** A longer body of a request is not parsed. */
const MAX_PARSED_BYTES = 64 * 1024
/** What a stranger's request says is sent back only if it is plain text of one line. */
const ECHO = /^[\x20-\x7e]{1,1024}$/

/** @throws Problem `invalid settings` for a body that is too long, or no text. */
export function checkResponse(response: CatchResponse): void {
  if (!('status' in response)) return
  const { status, body = '' } = response
  const most = status === 204 ? 0 : MAX_BODY_BYTES
  if (body.isWellFormed() && Buffer.byteLength(body) <= most) return
  throw invalid('invalid settings', { field: 'body', expected: `at most ${most} bytes of UTF-8` })
}

/** What an owner sees of it. */
export const shown = (chosen: CatchResponse): CatchResponseShown =>
  'hmac' in chosen ? { hmac: { provider: chosen.hmac.provider } } : chosen

export function createResponses(secrets: Secrets) {
  const keys = secrets.keys('catch response')
  return {
    stored(publicId: string, chosen: CatchResponse): StoredResponse {
      const response = JSON.stringify(shown(chosen))
      if (!('hmac' in chosen)) return { response, response_secret: null }
      const secret = Buffer.from(chosen.hmac.secret, 'utf8')
      return { response, response_secret: seal(keys[0], secret, publicId) }
    },

    /** The answer of an inbox; null if none is chosen, or if no configured key opens its secret. */
    of(inbox: InboxRow): CatchResponse | null {
      if (inbox.response === null) return null
      const chosen = JSON.parse(inbox.response) as CatchResponse
      if (!('hmac' in chosen)) return chosen
      const opened = unseal(keys, inbox.response_secret ?? new Uint8Array(), inbox.public_id)
      return opened && { hmac: { ...chosen.hmac, secret: opened.plain.toString('utf8') } }
    },
  }
}

/** A stored request that asks for the chosen answer. */
export type Asking = { method: string; query: string; body: Buffer; isNavigation: boolean }

export type Answer = { status: number; contentType: string; body: string; retryAfter?: number }

/**
 * The answer to this request; null for 204. Nothing that is shown as a page, and nothing fixed for a GET, so that an
 * inbox is no place to host a page or a script.
 */
export async function answerOf(chosen: CatchResponse, asking: Asking): Promise<Answer | null> {
  const { method, query, body, isNavigation } = asking
  if (isNavigation || !(ANSWERED as readonly string[]).includes(method)) return null
  if ('status' in chosen) {
    if (method === 'GET') return null
    const { status, contentType = 'text/plain', body = '', retryAfterSeconds: retryAfter } = chosen
    return { status, contentType, body, ...(retryAfter === undefined ? {} : { retryAfter }) }
  }
  const parsed = body.length > MAX_PARSED_BYTES ? Buffer.alloc(0) : body
  if ('echo' in chosen) {
    const text = echoed(chosen.echo, { query, body: parsed })
    if (text === null || !ECHO.test(text)) return null
    return { status: 200, contentType: 'text/plain', body: text }
  }
  const { provider, secret } = chosen.hmac
  const json = await answerChallenge(provider, { query, body: parsed }, secret)
  return json === null ? null : { status: 200, contentType: 'application/json', body: json }
}

/** HEAD and OPTIONS are not: browsers send them by themselves. */
export const ANSWERED = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** The text of a member of the body or of a parameter, if the request has it once. */
function echoed(
  echo: { json: string } | { query: string },
  { query, body }: { query: string; body: Buffer },
): string | null {
  if ('query' in echo) {
    const [value = null, second] = new URLSearchParams(query).getAll(echo.query)
    return second === undefined ? value : null
  }
  const value = parseStrictJsonBytes(body)
  const member = isObject(value) ? value[echo.json] : null
  return typeof member === 'string' ? member : null
}
