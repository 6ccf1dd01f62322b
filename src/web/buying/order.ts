/** One purchase at work: it asks for its invoice once, or polls the order that it has. */
import { useSignal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { MayflyError } from '../../client/errors.ts'
import type { PaymentQuote, PurchaseFromWallet } from '../../client/index.ts'
import { createPayments, type Payments } from '../../client/payments.ts'
import { clock, type Reach, watchfulService } from '../lib/service.ts'
import { end, latest, note, type Unfinished } from '../lib/unfinished.ts'

/** Orders by the SDK, under these terms. */
export type Buy = (payments: Payments, terms: PurchaseFromWallet) => Promise<unknown>

export type Phase =
  | { at: 'asking' }
  | { at: 'invoice'; quote: PaymentQuote }
  | { at: 'failed'; error: unknown }
  | { at: 'bought'; bought: unknown }

/** After these errors the order may still be paid or delivered, so its key must be kept. */
const UNDECIDED = ['service unreachable', 'unexpected answer', 'paid but not collected']

/** Whether the service has refused this order for good. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof MayflyError)) return false
  return error.status < 500 && error.status !== 429 && !UNDECIDED.includes(error.phrase)
}

/** Needed for what is sold in place of a capability that has ended. */
export const needsProof = (error: unknown): boolean =>
  error instanceof MayflyError && error.phrase === 'proof of payment required'

/** @param isKept goes on polling when its place on the page is gone. */
export function useOrder(
  purchase: Unfinished,
  buy: Buy,
  {
    isKept = false,
    onBought,
  }: { isKept?: boolean; onBought?: ((bought: unknown) => unknown) | undefined } = {},
) {
  const phase = useSignal<Phase>({ at: 'asking' })
  const reach = useSignal<Reach>({ status: 200, againAt: 0 })
  const [attempts, setAttempts] = useState(0)

  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    phase.value = { at: 'asking' }
    const http = watchfulService((next) => {
      reach.value = next
    })
    // The person pays at most the price that the page showed.
    const payments = createPayments(http, {
      maxSats: purchase.priceSats,
      now: clock.now,
      isEndless: true,
    })
    const onInvoice = (quote: PaymentQuote): void => {
      if (signal.aborted) return
      note(purchase, { quote })
      phase.value = { at: 'invoice', quote }
    }

    async function run(): Promise<unknown> {
      const { quote, idempotencyKey, planId } = latest(purchase)
      const terms = () => ({ planId, idempotencyKey, signal, ...proofOf(purchase) })
      if (quote === null) return buy(payments, { ...terms(), onInvoice })
      onInvoice(quote)
      return payments.collect(quote, terms())
    }

    run()
      .catch((error: unknown) => {
        const proof = proofOf(purchase)
        if (!needsProof(error) || !('preimage' in proof)) throw error
        const { planId, idempotencyKey } = purchase
        return buy(payments, { planId, idempotencyKey, signal, ...proof })
      })
      .then(
        (bought) => {
          if (signal.aborted) return
          note(purchase, { isPaid: true })
          phase.value = { at: 'bought', bought }
          onBought?.(bought)
        },
        (error: unknown) => {
          if (signal.aborted) return
          if (!(error instanceof MayflyError)) reportError(error)
          if (isRefusal(error) && !needsProof(error)) end(purchase)
          phase.value = { at: 'failed', error }
        },
      )
    return () => !isKept && stop.abort()
  }, [purchase.idempotencyKey, attempts])

  return {
    phase,
    reach,
    again: () => setAttempts(attempts + 1),
    onProof: (preimage: string) => note(purchase, { preimage }),
  }
}

/** The preimage, if a wallet of this page has paid. */
function proofOf(purchase: Unfinished): { preimage?: string } {
  const { preimage } = latest(purchase)
  return preimage === undefined ? {} : { preimage }
}
