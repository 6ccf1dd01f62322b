/** One purchase at work: the SDK asks for its invoice once, or goes on with the record that this browser has of it. */
import { signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { MayflyError } from '../../client/errors.ts'
import type { PaymentQuote, PurchaseFromWallet } from '../../client/index.ts'
import { createPayments, type Payments } from '../../client/payments.ts'
import { lastOf } from '../../client/record.ts'
import { clock, type Reach, watchfulService } from '../lib/service.ts'
import { type Begun, end, storeOf } from '../lib/unfinished.ts'

/** Orders by the SDK, under these terms. */
export type Buy = (payments: Payments, terms: PurchaseFromWallet) => Promise<unknown>

export type Phase =
  | { at: 'asking' }
  | { at: 'invoice'; quote: PaymentQuote }
  | { at: 'paid' }
  | { at: 'failed'; error: unknown }
  | { at: 'bought'; bought: unknown }

/** After these errors the order may still be paid or delivered, so its key must be kept. */
const UNDECIDED = [
  'service unreachable',
  'unexpected answer',
  'paid but not collected',
  'proof of payment required',
]

/** Whether the service has refused this order for good. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof MayflyError)) return false
  return error.status < 500 && error.status !== 429 && !UNDECIDED.includes(error.phrase)
}

/** Nothing went wrong: nobody paid in time. */
export const isExpired = (error: unknown): boolean =>
  error instanceof MayflyError && error.phrase === 'order expired'

export function useOrder(purchase: Begun, buy: Buy, onBought?: (bought: unknown) => unknown) {
  const order = useMemo(() => createOrder(purchase, buy, onBought), [purchase.idempotencyKey])
  useEffect(() => {
    void order.run()
    // An extension that was paid counts also when its dialog is closed.
    return () => purchase.extends === undefined && order.stop()
  }, [order])
  return order
}

function createOrder(
  purchase: Begun,
  buy: Buy,
  onBought: (bought: unknown) => unknown = () => undefined,
) {
  const { idempotencyKey, planId } = purchase
  const phase = signal<Phase>({ at: 'asking' })
  const reach = signal<Reach>({ status: 200, againAt: 0 })
  const http = watchfulService((next) => {
    reach.value = next
  })
  const store = storeOf(purchase)
  // The person pays at most the price that the page showed.
  const payments = createPayments(http, {
    maxSats: purchase.priceSats,
    service: location.origin,
    store,
    now: clock.now,
    isEndless: true,
  })
  let stop = new AbortController()

  /** @param preimage proves that a wallet of this page has paid. */
  async function run(preimage?: string): Promise<void> {
    stop.abort()
    stop = new AbortController()
    const { signal } = stop
    const record = store.load(idempotencyKey)
    const terms = { signal, preimage, onInvoice: show }
    function show(quote: PaymentQuote): void {
      if (!signal.aborted) phase.value = { at: 'invoice', quote }
    }
    if (record === null) phase.value = { at: 'asking' }
    else if (record.state === 'quoted' && preimage === undefined) show(lastOf(record))
    else phase.value = { at: 'paid' }
    try {
      const bought = await (record === null
        ? buy(payments, { planId, idempotencyKey, signal, onInvoice: show })
        : payments.resume(idempotencyKey, terms))
      if (signal.aborted) return
      phase.value = { at: 'bought', bought }
      onBought(bought)
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof MayflyError)) reportError(error)
      if (isRefusal(error)) end(purchase)
      phase.value = { at: 'failed', error }
    }
  }

  return { phase, reach, run, stop: () => stop.abort() }
}
