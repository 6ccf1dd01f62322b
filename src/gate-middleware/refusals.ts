/** Answers to refused visits. */
import { type ApiResponse, retryAfterSeconds } from '../client/http.ts'
import type { AnswerHeaders } from './stored-answers.ts'

export type { AnswerHeaders } from './stored-answers.ts'

export type Refused = {
  kind: 'refused'
  status: number
  headers: AnswerHeaders
  body: string | Uint8Array
}

/** The default Retry-After, if the service names none. */
const RETRY_SECONDS = 5

/** The service's 402 answer with its headers. */
export function relay({ status, headers, body }: ApiResponse): Refused {
  const kept: Record<string, string> = { 'cache-control': 'no-store' }
  for (const name of ['content-type', 'www-authenticate', 'retry-after']) {
    const value = headers.get(name)
    if (value !== null) kept[name] = value
  }
  return { kind: 'refused', status, headers: kept, body: JSON.stringify(body) }
}

/** A failure that the visitor cannot fix. It never asks for payment. */
export function unavailable(answer: ApiResponse | null): Refused {
  const seconds = (answer && retryAfterSeconds(answer.headers)) ?? RETRY_SECONDS
  return refusal(503, 'payment unavailable', seconds)
}

export function refusal(status: number, error: string, retrySeconds?: number): Refused {
  return {
    kind: 'refused',
    status,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      ...(retrySeconds === undefined ? {} : { 'retry-after': String(retrySeconds) }),
    },
    body: JSON.stringify({ error }),
  }
}
