/** An error of the catalogue, thrown to answer a request with it. */
import { ERRORS, type Fault, type Phrase } from '../protocol/errors.ts'

/** An error for the caller. Any other thrown error is a bug of the service. */
export class Problem extends Error {
  override name = 'Problem'
  readonly phrase: Phrase
  readonly status: number
  readonly headers: Record<string, string>
  readonly fault: Fault
  /** Of a 429: the name of the limit, for the metrics; `room` if too much was open already. */
  readonly limit: string
  // biome-ignore lint/complexity/useMaxParams: only the functions below call it.
  constructor(phrase: Phrase, headers: Record<string, string>, fault: Fault, limit = 'room') {
    // Nobody reads where an expected refusal was made, and to note it costs as much as the rest of the answer.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(phrase)
    Error.stackTraceLimit = stackTraceLimit
    this.phrase = phrase
    this.status = ERRORS[phrase].status
    this.headers = headers
    this.fault = fault
    this.limit = limit
  }
}

/** `throw problem('order expired')`. The headers are added to this answer. */
export function problem(phrase: Phrase, headers: Record<string, string> = {}): Problem {
  return new Problem(phrase, headers, {})
}

/** `throw invalid('invalid settings', { field: 'name', expected: 'at most 80 characters' })`, for a 400. */
export function invalid(phrase: Phrase, fault: Fault): Problem {
  return new Problem(phrase, {}, fault)
}

/** Retry-After when the store is away. */
const RETRY_STORE_SECONDS = 2

export const serviceUnavailable = (): Problem =>
  problem('service unavailable', { 'retry-after': String(RETRY_STORE_SECONDS) })

/** Retry-After when the node is away. */
const RETRY_CHECKOUT_SECONDS = 5

export const checkoutUnavailable = (): Problem =>
  problem('checkout unavailable', { 'retry-after': String(RETRY_CHECKOUT_SECONDS) })

export const unauthorized = (): Problem => problem('unauthorized', { 'www-authenticate': 'Bearer' })
