/** Buying: one key, one order, one invoice, however often an answer is lost on the way. */
import type { Quote as ServerQuote } from '../payment/orders.ts'
import { MayflyError } from './errors.ts'
import { type Answer, type Ask, errorOf, type Http, retryAfterSeconds } from './http.ts'
import { wait } from './wait.ts'

/** The interface's PaymentQuote. `expiresAt` is RFC 3339. */
export type PaymentQuote = Omit<ServerQuote, 'expiresAt'> & { expiresAt: string }

export type Purchase = {
  planId: PaymentQuote['planId']
  /** Called once with the invoice to pay; its end is not waited for. */
  onInvoice: (quote: PaymentQuote) => unknown
  /** Refuses a higher price before the invoice is shown. Default: the SDK's `maxSats`. */
  maxSats?: number
  /** Names the purchase; give the same one to take up an interrupted purchase. Default: fresh. */
  idempotencyKey?: string
  signal?: AbortSignal
}

/** A lost answer is asked for again this often, with the same key. */
const LOST_ANSWERS = 4
const RETRY_SECONDS = 1

export type Payments = {
  /** Buys natively: shows the invoice and polls until it is paid. Resolves to the resource. */
  buy(request: Ask, purchase: Purchase): Promise<unknown>
}

export function createPayments(http: Http, maxSats: number): Payments {
  /** Asks again when the answer was lost, which is safe: the key makes it the same order. */
  async function insist(ask: Ask): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await http.ask(ask)
        if (answer.status < 500 && answer.status !== 429) return answer
        if (attempt === LOST_ANSWERS) return answer
        await wait(retryAfterSeconds(answer.headers) ?? RETRY_SECONDS, ask.signal)
      } catch (error) {
        if (ask.signal?.aborted || attempt === LOST_ANSWERS) throw error
        await wait(RETRY_SECONDS, ask.signal)
      }
    }
  }

  async function poll(quote: PaymentQuote, key: string, signal?: AbortSignal): Promise<unknown> {
    for (;;) {
      const answer = await insist({
        path: `/api/payments/${encodeURIComponent(quote.orderId)}`,
        headers: { 'idempotency-key': key },
        signal,
      })
      if (answer.status === 200) return resourceOf(answer)
      if (answer.status !== 402) throw errorOf(answer)
      await wait(retryAfterSeconds(answer.headers) ?? RETRY_SECONDS, signal)
    }
  }

  return {
    async buy(request, purchase) {
      const key = purchase.idempotencyKey ?? crypto.randomUUID()
      const { signal } = purchase
      const answer = await insist({
        ...request,
        method: 'POST',
        headers: { ...request.headers, 'idempotency-key': key },
        signal,
      })
      if (answer.status === 200) return resourceOf(answer)
      if (answer.status !== 402) throw errorOf(answer)
      const quote = quoteOf(answer)
      if (quote.amountSats > (purchase.maxSats ?? maxSats)) {
        throw new MayflyError('price above the ceiling', 0)
      }
      await purchase.onInvoice(quote)
      return poll(quote, key, signal)
    },
  }
}

function resourceOf({ status, body }: Answer): unknown {
  if (typeof body === 'object' && body !== null && 'resource' in body) return body.resource
  throw new MayflyError('unexpected answer', status)
}

function quoteOf({ status, body }: Answer): PaymentQuote {
  const quote = body as Partial<PaymentQuote> | null
  if (
    typeof quote?.orderId !== 'string' ||
    typeof quote.bolt11 !== 'string' ||
    !Number.isSafeInteger(quote.amountSats)
  ) {
    throw new MayflyError('unexpected answer', status)
  }
  return quote as PaymentQuote
}
