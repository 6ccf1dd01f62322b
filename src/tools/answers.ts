/** Answers of the service, and what a refusal says to a model: what to do, and where the money is. */

import { isObject } from '../lib/json.ts'
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

export type Api = ReturnType<typeof apiBy>

/** The service as the tools ask it. @throws Refusal for any other answer, with what the caller can do. */
export const apiBy = (send: (asked: Asked) => Promise<Answered>) => ({
  /** The JSON object of a 200 answer. */
  json: async (method: Method, path: string, json?: unknown) =>
    expectJson(await send({ method, path, json })),
  /** For what is answered with 204. */
  async done(method: Method, path: string): Promise<void> {
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
  const isExplained = isKnown && typeof fault.expected === 'string'
  // A request that is malformed has charged, spent and stored nothing.
  const isMalformed = isKnown && status === 400
  const retryAfter = header('retry-after')
  const id = header('x-request-id')
  return new Refusal(
    [
      isKnown ? `${phrase}.` : `The service answers, but not like a Mayfly (HTTP ${status}).`,
      ...(isExplained ? [expectation(fault)] : []),
      ...(isKnown && !(isMalformed && isExplained) ? [ERRORS[phrase as Phrase].advice] : []),
      ...(isMalformed ? ['Nothing was done.'] : []),
      ...(typeof fault.revealAt === 'string' ? [`It opens at ${fault.revealAt}.`] : []),
      ...(retryAfter && /^\d{1,9}$/.test(retryAfter) ? [`Retry after ${retryAfter} seconds.`] : []),
      ...(status >= 500 && id ? [`The operator can find it by ${id}.`] : []),
    ].join(' '),
    phrase,
  )
}

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
