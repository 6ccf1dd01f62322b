/** The options of a purchase, and its progress reports. */
import type { Quote as ServerQuote } from '../payment/quote.ts'
import { within } from './wait.ts'
import type { Wallet } from './wallet.ts'

/** An unpaid order with its BOLT 11 invoice. `amountSats` is in satoshis, `expiresAt` is RFC 3339. */
export type PaymentQuote = Omit<ServerQuote, 'expiresAt'> & { expiresAt: string }

/**
 * The progress of a purchase. `invoice`: the invoice is checked and below the ceiling. `paying`: the
 * wallet is asked to pay. `paid`: the wallet returned a valid proof. `uncertain`: the wallet does not
 * know, so the order is polled. `idempotencyKey` or `preimage` is enough to collect the purchase: keep
 * both as secret as the capability.
 */
export type PurchaseProgress = {
  stage: 'invoice' | 'paying' | 'paid' | 'uncertain'
  quote: PaymentQuote
  idempotencyKey: string
  /** With `paid`: the proof, 64 hex digits. Keep it with the key until the capability is saved. */
  preimage?: string
}

/** The options of every purchase. */
export type PurchaseTerms = {
  planId: PaymentQuote['planId']
  /** Refuses a higher price, in satoshis, before anything is paid or shown. Default: the client's. */
  maxSats?: number
  /**
   * Names the order. Repeat an interrupted purchase with the same key and wallet: it is never paid
   * twice. Use a random UUIDv4. If another client sends the same key, the order is delivered only to a
   * proof of payment. Default: a new UUIDv4.
   */
  idempotencyKey?: string
  /** The preimage of an earlier payment for this key. It collects the purchase from any address. */
  preimage?: string
  /** Ends the wait. A purchase that was paid by then can be collected with the same key. */
  signal?: AbortSignal | undefined
  /** Ends the wait after this time, in milliseconds. Default: as long as the invoice can be paid. */
  timeoutMs?: number
  /** Called at each step of the purchase. If it throws, the purchase ends. */
  onProgress?: (progress: PurchaseProgress) => void
}

/** Called once with the invoice, and awaited. If it throws, the purchase ends. */
export type OnInvoice = (quote: PaymentQuote) => unknown

/** A purchase of a client that has a wallet. */
export type PurchaseFromWallet = PurchaseTerms & {
  /** Pays this purchase in place of the client's own. */
  wallet?: Wallet | undefined
  onInvoice?: OnInvoice
}

/**
 * A purchase, which shows its invoice or is paid from a wallet.
 *
 * ```ts
 * await mayfly.buyCatch({ planId: 'spark', onInvoice: (quote) => show(quote.bolt11) })
 * await mayfly.buyCatch({ planId: 'spark', wallet, maxSats: 200 })
 * ```
 */
export type Purchase = PurchaseFromWallet & ({ onInvoice: OnInvoice } | { wallet: Wallet })

/** The purchase, ended by its signal or its time. */
export const limited = <Terms extends Pick<PurchaseTerms, 'signal' | 'timeoutMs'>>(
  terms: Terms,
): Terms => ({ ...terms, signal: within(terms) })
