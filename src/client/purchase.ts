/** What a buyer hands in, and what a purchase tells on its way. */
import type { Quote as ServerQuote } from '../payment/order.ts'
import type { Wallet } from './wallet.ts'

/**
 * The interface's PaymentQuote. `expiresAt` is RFC 3339, `amountSats` is in satoshis.
 *
 * ```ts
 * const costs = ({ amountSats, expiresAt }: PaymentQuote) => `${amountSats} sat until ${expiresAt}`
 * ```
 */
export type PaymentQuote = Omit<ServerQuote, 'expiresAt'> & { expiresAt: string }

/**
 * How a wallet's payment is shown to the service; docs/payments.md has all three.
 *
 * ```ts
 * await mayfly.buyCatch({ planId: 'spark', wallet, flow: 'l402' })
 * ```
 */
export type PaymentFlow = 'native' | 'payment' | 'l402'

/**
 * Where a purchase stands: `invoice` it is there, checked and below the ceiling · `paying` the wallet
 * is asked · `paid` the wallet proved it · `uncertain` the wallet cannot tell, so the order is polled.
 * Who has `idempotencyKey` or `preimage` collects the purchase: keep them as secret as the capability.
 *
 * ```ts
 * const onProgress = ({ stage, quote }: PurchaseProgress) => console.log(stage, quote.amountSats)
 * ```
 */
export type PurchaseProgress = {
  stage: 'invoice' | 'paying' | 'paid' | 'uncertain'
  quote: PaymentQuote
  idempotencyKey: string
  /** With `paid`: the wallet's proof, to be kept beside the key until the capability is saved. */
  preimage?: string
}

/**
 * What every purchase takes, whoever pays.
 *
 * ```ts
 * const terms: PurchaseTerms = { planId: 'spark', maxSats: 200, signal: AbortSignal.timeout(60_000) }
 * ```
 */
export type PurchaseTerms = {
  planId: PaymentQuote['planId']
  /** Refuses a higher price before anything is paid or shown. Satoshis. Default: the SDK's. */
  maxSats?: number
  /**
   * Names the purchase: one key is one order. Give the same one, with the same wallet, to take up an
   * interrupted purchase; it is never paid twice. Take a fresh UUIDv4: an order whose key can be
   * guessed is delivered to proof of payment alone once the key came from two addresses. Default: a
   * fresh UUIDv4.
   */
  idempotencyKey?: string
  /** What a wallet proved for this key before: collects an interrupted purchase from any address. */
  preimage?: string
  /** Ends the waiting. What has been paid by then can be taken up with the same key. */
  signal?: AbortSignal
  /** Told where the purchase stands. What it throws ends the purchase. */
  onProgress?: (progress: PurchaseProgress) => void
}

/**
 * Called once with the invoice, and waited for; what it throws ends the purchase.
 *
 * ```ts
 * const onInvoice: OnInvoice = ({ bolt11 }) => show(`lightning:${bolt11}`)
 * ```
 */
export type OnInvoice = (quote: PaymentQuote) => unknown

/**
 * Somebody else pays the invoice that is shown.
 *
 * ```ts
 * const purchase: PurchaseByHand = { planId: 'spark', onInvoice: ({ bolt11 }) => show(bolt11) }
 * ```
 */
export type PurchaseByHand = PurchaseTerms & {
  onInvoice: OnInvoice
  wallet?: undefined
  flow?: 'native'
}

/**
 * The wallet pays by itself.
 *
 * ```ts
 * const purchase: PurchaseByWallet = { planId: 'long', wallet, flow: 'native' }
 * ```
 */
export type PurchaseByWallet = PurchaseTerms & {
  wallet: Wallet
  /** Default: `payment`. */
  flow?: PaymentFlow
  onInvoice?: OnInvoice
}

/**
 * A purchase: shows its invoice, or is paid from a wallet.
 *
 * ```ts
 * await mayfly.buyCatch({ planId: 'spark', onInvoice: (quote) => show(quote.bolt11) })
 * await mayfly.buyCatch({ planId: 'spark', wallet, maxSats: 200 })
 * ```
 */
export type Purchase = PurchaseByHand | PurchaseByWallet

/**
 * A purchase from a Mayfly that has a wallet.
 *
 * ```ts
 * const purchase: PurchaseFromWallet = { planId: 'spark', maxSats: 200 }
 * await createMayfly({ baseUrl, wallet }).buyCatch(purchase)
 * ```
 */
export type PurchaseFromWallet = Omit<PurchaseByWallet, 'wallet'> & { wallet?: Wallet | undefined }
