/** Answers of the service, and what a refusal says to a model: in the words of the tools, and where the money is. */

import { isObject } from '../lib/json.ts'
import { PLAN_IDS } from '../lib/product-names.ts'
import { ERRORS, type Phrase } from '../protocol/errors.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export type Asked = {
  method: Method
  path: string
  /** Sent as JSON. */
  json?: unknown
}

/** `body` is the JSON of the answer, or null. */
export type Answered = {
  status: number
  body: unknown
  header(name: string): string | undefined
}

/** A result that a model can act on: its own mistake, or a refusal of the service. */
export class Refusal extends Error {
  override name = 'Refusal'
  /** The phrase of the service, if it refused. */
  readonly phrase: string
  constructor(message: string, phrase = '') {
    super(message)
    this.phrase = phrase
  }
}

/** The service as the tools ask it. @throws Refusal for any other answer, with what the caller can do. */
export type Api = {
  /** The JSON object of a 200 answer. */
  json(method: Method, path: string, json?: unknown): Promise<Record<string, unknown>>
  /** For what is answered with 204. */
  done(method: Method, path: string): Promise<void>
}

export const apiBy = (send: (asked: Asked) => Promise<Answered>): Api => ({
  json: async (method, path, json) => expectJson(await send({ method, path, json })),
  async done(method, path) {
    const answered = await send({ method, path })
    if (answered.status !== 204) throw refusalOf(answered)
  },
})

/** The JSON object of an answer. @throws Refusal for any other status. */
export function expectJson(answered: Answered, status = 200): Record<string, unknown> {
  if (answered.status !== status || !isObject(answered.body)) throw refusalOf(answered)
  return answered.body
}

export function refusalOf({ status, body, header }: Answered): Refusal {
  const fault = isObject(body) ? body : {}
  const phrase = typeof fault.error === 'string' ? fault.error : ''
  // Whoever answers may not be this service, and says nothing to a model then.
  const isKnown = Object.hasOwn(ERRORS, phrase)
  const retryAfter = header('retry-after')
  const id = header('x-request-id')
  return new Refusal(
    [
      isKnown ? `${phrase}.` : `The service answers, but not like a Mayfly (HTTP ${status}).`,
      ...(isKnown && typeof fault.expected === 'string' ? [expectation(fault)] : []),
      ...(isKnown ? [adviceOn(phrase as Phrase, status)] : []),
      ...(typeof fault.revealAt === 'string' ? [`It opens at ${fault.revealAt}.`] : []),
      ...(retryAfter && /^\d{1,9}$/.test(retryAfter) ? [`Retry after ${retryAfter} seconds.`] : []),
      ...(status >= 500 && id ? [`The operator can find it by ${id}.`] : []),
    ].join(' '),
    phrase,
  )
}

/** A request that is malformed has charged, spent and stored nothing. */
const adviceOn = (phrase: Phrase, status: number): string =>
  WORDS[phrase] ?? (status === 400 ? 'Nothing was done.' : ERRORS[phrase].advice)

function expectation({ field, expected }: Record<string, unknown>): string {
  const argument = typeof field === 'string' ? (ARGUMENTS[field] ?? field) : null
  return argument === null ? `Expected: ${expected}.` : `${argument} must be ${expected}.`
}

/** Members and headers of HTTP by the names that the tools have for them. */
const ARGUMENTS: Record<string, string> = {
  'X-Whisper-Plan': 'planId',
  'X-Whisper-Read-Limit': 'readLimit',
  'X-Whisper-Reveal-At': 'revealAt',
  'X-Whisper-Reveal-When': 'revealWhen',
  'X-Whisper-Receipt': 'receipt',
  name: 'label',
  expectedIntervalSeconds: 'intervalSeconds',
  publicStatusEnabled: 'publicStatus',
  destinations: 'alerts',
}

/** Where the advice of HTTP would speak of headers, methods and paths. */
const WORDS: Partial<Record<Phrase, string>> = {
  'invalid plan': `The plan is not on sale, or not the one that it was bought with. Plans: ${PLAN_IDS.join(', ')}; the tool catalog has their prices.`,
  'request too large': 'The arguments are too long. Nothing was done.',
  'idempotency key reused with a different request':
    'This purchase was begun with other arguments. To repeat it, call it with those; if it is paid, call check_order. Another purchase needs another name or no purchaseId.',
  'invalid destinations':
    'Alerts go to at most three https URLs of public hosts, or inboxes of your own. They were not changed.',
  'invalid ciphertext': 'A ciphertext has at least 30 bytes. Nothing was bought.',
  'ciphertext too large': 'It exceeds the maxCiphertextBytes of the plan. Nothing was bought.',
  unauthorized:
    'What it is for has ended or is suspended, or the token is missing, replaced, or not the one that this tool takes. Nothing was done.',
  'invalid payment credential':
    'It is malformed, forged or of another purchase. Nothing was spent: do not pay again, and repeat the call with the right one, or call check_order.',
  'order not found':
    'No purchase has this orderId, or the purchaseId is of another one. If you have paid, do not pay again: the operator can restore it by its payment hash.',
  'order expired':
    'The invoice was not paid in time, or what it bought was not collected before its end. To buy again, begin a new purchase.',
  'order refunded': 'The operator has paid it back. To buy again, begin a new purchase.',
  'proof of payment required':
    'It is paid, and is handed to proof of the payment alone. Do not pay again: repeat the call that buys, with the credential of the payment. Without it, the operator can deliver.',
  'not revealed':
    'No read was spent. If it waits for a monitor to fall silent, nobody can say when it opens.',
  'rate limited': 'Nothing was spent.',
  'internal error':
    'The service failed. What is paid is kept: repeat the same call, and do not pay again.',
  'service unavailable': 'What is paid is kept: repeat the same call, and do not pay again.',
  'checkout unavailable':
    'The Lightning node cannot take payments now. No invoice was made, and what is paid is kept.',
}
