/** The requests of a purchase, which are repeated until one is answered, and what their answers say. */
import { MayflyError } from './errors.ts'
import { type ApiRequest, type ApiResponse, type Http, isBusy, retryAfterSeconds } from './http.ts'
import type { PaymentFlow, PaymentQuote } from './purchase.ts'
import type { Order, RecordedInvoice } from './record.ts'
import { wait } from './wait.ts'

/** Attempts to send a request whose answer is lost, before any money may have moved. */
const MAX_ATTEMPTS = 4
/** How long to retry an unreachable service after money may have left the wallet. */
export const COLLECT_MS = 10 * 60 * 1000
/** The first pause after a lost answer. It doubles each time, up to the maximum. */
const RETRY_SECONDS = 0.25
const MAX_RETRY_SECONDS = 15
/** The pause between two polls, if the service names none. */
export const POLL_SECONDS = 1

/** What collects an order: its key, and the preimage if a wallet returned one. */
export type Claim = { idempotencyKey: string; preimage?: string | undefined }

export type Requests = ReturnType<typeof createRequests>

export function createRequests(http: Http) {
  /** Repeats a request whose answer was lost. This is safe, since its key names the order. */
  async function requestWithRetries(
    sending: ApiRequest,
    isOver: (attempt: number, pause: number) => boolean,
  ): Promise<ApiResponse> {
    for (let attempt = 1; ; attempt++) {
      let pause = Math.min(RETRY_SECONDS * 2 ** (attempt - 1), MAX_RETRY_SECONDS)
      try {
        const answer = await http.request(sending)
        if (!isLost(answer)) return answer
        pause = retryAfterSeconds(answer.headers) ?? pause
        if (isOver(attempt, pause)) return answer
      } catch (error) {
        if (sending.signal?.aborted || isOver(attempt, pause)) throw error
      }
      await wait(pause, sending.signal)
    }
  }

  /** Nothing is paid yet, so nobody waits long without a word. */
  const requestBeforePayment = (sending: ApiRequest): Promise<ApiResponse> =>
    requestWithRetries(
      sending,
      (attempt, pause) => attempt >= MAX_ATTEMPTS || pause > MAX_RETRY_SECONDS,
    )

  /** Requests with retries, after money may have been paid. */
  function collecting(sending: ApiRequest): Promise<ApiResponse> {
    const until = Date.now() + COLLECT_MS
    return requestWithRetries(sending, () => Date.now() > until)
  }

  return { requestBeforePayment, collecting }
}

export function requestOf(
  { path, headers, body }: Order,
  {
    idempotencyKey,
    preimage,
    flow,
    signal,
  }: Claim & { flow: PaymentFlow; signal?: AbortSignal | undefined },
): ApiRequest {
  return {
    ...{ method: 'POST', path },
    headers: {
      ...headers,
      'idempotency-key': idempotencyKey,
      ...(flow === 'native' ? {} : { 'x-payment-protocol': flow }),
      ...proofHeader(preimage),
    },
    ...(body === undefined ? {} : { body }),
    signal,
  }
}

/** Asks for an order by its id, which only who opened it knows. */
export function pollOf(
  { orderId }: RecordedInvoice,
  {
    idempotencyKey,
    preimage,
    signal,
    extends: publicId,
  }: Claim & { signal?: AbortSignal | undefined; extends?: string },
): ApiRequest {
  return {
    path: `/api/${publicId === undefined ? 'payments' : 'extensions'}/${encodeURIComponent(orderId)}`,
    headers: { 'idempotency-key': idempotencyKey, ...proofHeader(preimage) },
    signal,
  }
}

/** @throws MayflyError `second payment refused` if the service offers another invoice for this order. */
export function refuseOther({ body, status }: ApiResponse, { paymentHash }: RecordedInvoice): void {
  const offered = (body as Partial<PaymentQuote> | null)?.paymentHash
  if (offered !== undefined && offered !== paymentHash) {
    throw new MayflyError('second payment refused', status)
  }
}

/** Whether the answer says nothing about the order: the service is down or busy, or a proxy's. */
export const isLost = (answer: ApiResponse): boolean =>
  isBusy(answer) || (answer.status < 400 && answer.status !== 200)

/** Whether the answer is a refusal, and not only a request to wait. */
export const isFinal = (status: number): boolean =>
  status >= 400 && status < 500 && status !== 408 && status !== 429

/** The preimage goes in a header, never in the URL, which proxies log. */
const proofHeader = (preimage: string | undefined): Record<string, string> =>
  preimage === undefined ? {} : { 'payment-preimage': preimage }

/** The service's clock, in unix milliseconds. A browser hides it from pages of another origin. */
export function dateOf({ headers }: ApiResponse): number | null {
  const at = Date.parse(headers.get('date') ?? '')
  return Number.isNaN(at) ? null : at
}

/** What was bought; of an extension its answer, because nothing new was. */
export function resourceOf({ status, body }: ApiResponse): unknown {
  if (typeof body === 'object' && body !== null && 'resource' in body) return body.resource
  if (typeof body === 'object' && body !== null && 'extended' in body) return body
  throw new MayflyError('unexpected answer', status)
}
