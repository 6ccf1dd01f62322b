/** Buying: one key, one order, one invoice, one payment, however often an answer is lost. */
import { hex, hexBytes } from '../lib/bytes.ts'
import type { PlanId, Product } from '../lib/product-names.ts'
import { MayflyError, type MayflyPhrase } from './errors.ts'
import {
  type ApiRequest,
  type ApiResponse,
  errorOf,
  type Http,
  isBusy,
  retryAfterSeconds,
} from './http.ts'
import { type Authorizer, type Offer, readOffer } from './offer.ts'
import type {
  PaymentFlow,
  PaymentQuote,
  Purchase,
  PurchaseFromWallet,
  PurchaseProgress,
} from './purchase.ts'
import { wait } from './wait.ts'
import { type Wallet, WalletError } from './wallet.ts'

/** Attempts to send a request whose answer is lost, before any money may have moved. */
const MAX_ATTEMPTS = 4
/** How long to retry an unreachable service after money may have left the wallet. */
const COLLECT_MS = 10 * 60 * 1000
/** The first pause after a lost answer. It doubles each time, up to the maximum. */
const RETRY_SECONDS = 0.25
const MAX_RETRY_SECONDS = 15
/** The pause between two polls, if the service names none. */
const POLL_SECONDS = 1

export type Payments = {
  /** Buys from a wallet, or with an invoice that is shown. Resolves to the resource. */
  buy(request: ApiRequest, purchase: Purchase | PurchaseFromWallet): Promise<unknown>
  /**
   * Waits for the payment of an order whose invoice was shown before, and resolves to the resource. It needs the key
   * of the order and nothing of its request, so the bytes of a whisper may be gone.
   */
  resume(quote: PaymentQuote, claim: Resumption): Promise<unknown>
}

export type Resumption = { idempotencyKey: string; preimage?: string; signal?: AbortSignal }

export type PaymentsOptions = {
  maxSats: number
  wallet?: Wallet | undefined
  /** Needed where a wallet pays: only the native flow does without. */
  authorizer?: Authorizer
}

/** The request that orders a plan. The order of a whisper has its own, with the bytes. */
export function planOrder(product: Exclude<Product, 'whisper'>, planId: PlanId): ApiRequest {
  return {
    path: `/api/payments/${product}`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ planId }),
  }
}

/** What collects an order: its key, and the preimage if a wallet returned one. */
type Claim = { key: string; preimage?: string | undefined }
type ReportProgress = (stage: PurchaseProgress['stage'], preimage?: string) => void

export function createPayments(http: Http, options: PaymentsOptions): Payments {
  /** Payments under way, by invoice, so that two purchases with one key make one payment. */
  const underWay = new Map<string, Promise<string>>()

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

  /** Requests with retries, after money may have been paid. */
  function collect(sending: ApiRequest): Promise<ApiResponse> {
    const until = Date.now() + COLLECT_MS
    return requestWithRetries(sending, () => Date.now() > until)
  }

  /** Polls until the service reports the order as settled or dead. */
  async function poll(
    quote: PaymentQuote,
    { key, preimage }: Claim,
    { signal, until = Number.POSITIVE_INFINITY }: { signal?: AbortSignal; until?: number },
  ): Promise<unknown> {
    for (;;) {
      const answer = await collect({
        path: `/api/payments/${encodeURIComponent(quote.orderId)}`,
        headers: { 'idempotency-key': key, ...proofHeader(preimage) },
        signal,
      })
      if (answer.status === 200) return resourceOf(answer)
      if (answer.status !== 402) throw errorOf(answer)
      if (Date.now() > until) throw new MayflyError('paid but not collected', 0)
      await wait(retryAfterSeconds(answer.headers) ?? POLL_SECONDS, signal)
    }
  }

  /** Pays an invoice and returns the proven preimage. Concurrent calls share one payment. */
  function pay(wallet: Wallet, quote: PaymentQuote, signal?: AbortSignal): Promise<string> {
    const shared = underWay.get(quote.paymentHash)
    if (shared) return shared
    const payment = provenPayment(wallet, quote, signal).finally(() => {
      underWay.delete(quote.paymentHash)
    })
    underWay.set(quote.paymentHash, payment)
    return payment
  }

  /** Redeems the payment: sends the proof, or polls in the native flow and if the proof is refused. */
  async function redeem(
    request: ApiRequest,
    { quote, authorize }: Offer,
    { key, preimage }: Claim & { preimage: string },
  ): Promise<unknown> {
    const limits = { ...signalOf(request), until: Date.now() + COLLECT_MS }
    if (authorize !== null) {
      const authorization = authorize(preimage)
      const answer = await collect({ ...request, headers: { ...request.headers, authorization } })
      if (answer.status === 200) return resourceOf(answer)
      if (answer.status !== 402 && answer.status !== 401) throw errorOf(answer)
      const again = answer.body as Partial<PaymentQuote> | null
      // A 401 without an invoice: the order is paid, and only this proof was refused.
      const isPaid = answer.status === 401 && again?.paymentHash === undefined
      if (!isPaid && again?.paymentHash !== quote.paymentHash) {
        throw new MayflyError('second payment refused', answer.status)
      }
    }
    return poll(quote, { key, preimage }, limits)
  }

  async function buyFromWallet({
    request,
    offer,
    wallet,
    key,
    report,
  }: {
    request: ApiRequest
    offer: Offer
    wallet: Wallet
    key: string
    report: ReportProgress
  }): Promise<unknown> {
    const { quote } = offer
    report('paying')
    let preimage: string
    try {
      preimage = await pay(wallet, quote, request.signal)
    } catch (cause) {
      if (cause instanceof WalletError && cause.outcome === 'not paid') {
        throw new MayflyError('payment failed', 0, { cause })
      }
      return withPhrase('payment outcome unknown', cause, () => {
        report('uncertain')
        return poll(quote, { key }, signalOf(request))
      })
    }
    return withPhrase('paid but not collected', null, () => {
      report('paid', preimage)
      return redeem(request, offer, { key, preimage })
    })
  }

  return {
    async buy({ path, headers, body }, purchase) {
      const key = purchase.idempotencyKey ?? crypto.randomUUID()
      const { signal, onInvoice, onProgress, preimage } = purchase
      const wallet = purchase.wallet ?? options.wallet
      const flow: PaymentFlow = wallet ? (purchase.flow ?? 'payment') : 'native'
      const request: ApiRequest = {
        method: 'POST',
        path,
        headers: {
          ...headers,
          'idempotency-key': key,
          ...(flow === 'native' ? {} : { 'x-payment-protocol': flow }),
          ...proofHeader(preimage),
        },
        ...(body === undefined ? {} : { body }),
        signal,
      }
      // Nothing is paid yet, so nobody waits long without a word.
      const answer = await requestWithRetries(
        request,
        (attempt, pause) => attempt >= MAX_ATTEMPTS || pause > MAX_RETRY_SECONDS,
      )
      if (answer.status === 200) return resourceOf(answer)
      if (answer.status !== 402) throw errorOf(answer)
      const maxSats = purchase.maxSats ?? options.maxSats
      const offer = await readOffer(answer, {
        request,
        flow,
        maxSats,
        authorizer: options.authorizer,
      })
      const { quote } = offer
      const report: ReportProgress = (stage, proof) =>
        onProgress?.({
          stage,
          quote,
          idempotencyKey: key,
          ...(proof === undefined ? {} : { preimage: proof }),
        })
      report('invoice')
      await onInvoice?.(quote)
      signal?.throwIfAborted()
      if (!wallet) return poll(quote, { key, preimage }, signalOf(request))
      return buyFromWallet({ request, offer, wallet, key, report })
    },

    resume(quote, { idempotencyKey, preimage, signal }) {
      return poll(quote, { key: idempotencyKey, preimage }, signal ? { signal } : {})
    },
  }
}

/** @throws WalletError, also if a wallet reports a payment without a valid proof. */
async function provenPayment(
  wallet: Wallet,
  { bolt11, paymentHash }: PaymentQuote,
  signal?: AbortSignal,
): Promise<string> {
  const { preimage } = await wallet.pay(bolt11, signal ? { signal } : {})
  const bytes = /^[0-9a-f]{64}$/.test(preimage) ? hexBytes(preimage) : null
  const sha256 = bytes && hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
  if (sha256 === paymentHash) return preimage
  throw new WalletError('the wallet did not prove its payment', 'unknown')
}

/** Rethrows the service's refusals. Any other failure becomes an error with this phrase. */
async function withPhrase(
  phrase: MayflyPhrase,
  cause: unknown,
  work: () => Promise<unknown>,
): Promise<unknown> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof MayflyError && isFinal(error.status)) throw error
    throw new MayflyError(phrase, 0, { cause: cause ?? error })
  }
}

/** Whether the answer says nothing about the order: the service is down or busy, or a proxy's. */
const isLost = (answer: ApiResponse): boolean =>
  isBusy(answer) || (answer.status < 400 && answer.status !== 200)

/** Whether the answer is a refusal, and not only a request to wait. */
const isFinal = (status: number): boolean =>
  status >= 400 && status < 500 && status !== 408 && status !== 429

/** The preimage goes in a header, never in the URL, which proxies log. */
const proofHeader = (preimage: string | undefined): Record<string, string> =>
  preimage === undefined ? {} : { 'payment-preimage': preimage }

const signalOf = ({ signal }: ApiRequest): { signal?: AbortSignal } => (signal ? { signal } : {})

/** What was bought; of an extension its answer, because nothing new was. */
function resourceOf({ status, body }: ApiResponse): unknown {
  if (typeof body === 'object' && body !== null && 'resource' in body) return body.resource
  if (typeof body === 'object' && body !== null && 'extended' in body) return body
  throw new MayflyError('unexpected answer', status)
}
