/** The requests of a purchase, and what their answers say. */
import { isObject } from '../lib/json.ts'
import type { PlanId, Product } from '../lib/product-names.ts'
import { planRequest } from '../protocol/purchase-requests.ts'
import { MayflyError } from './errors.ts'
import { type ApiRequest, type ApiResponse, isBusy } from './http.ts'
import type { PaymentQuote } from './purchase.ts'
import type { Order, RecordedInvoice } from './record.ts'

/** Orders a plan. @param settings what a monitor is set to from the beginning. */
export const planOrder = (
  product: Exclude<Product, 'whisper'>,
  planId: PlanId,
  settings?: object,
): Order => ({ product, planId, ...planRequest(product, planId, settings) })

/** What collects an order: its key, and the preimage if a wallet returned one. */
export type Claim = { idempotencyKey: string; preimage?: string | undefined }

export function requestOf(
  { path, headers, body }: Order,
  { idempotencyKey, preimage, signal }: Claim & { signal?: AbortSignal | undefined },
): ApiRequest {
  return {
    method: 'POST',
    path,
    headers: { ...headers, 'idempotency-key': idempotencyKey, ...proofHeader(preimage) },
    body,
    signal,
  }
}

/** Asks for an order by its id, which only who opened it knows. */
export function pollOf(
  { orderId }: Pick<RecordedInvoice, 'orderId'>,
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
  if (isObject(body) && isObject(body.resource)) return body.resource
  if (isObject(body) && 'extended' in body) return body
  throw new MayflyError('unexpected answer', status)
}
