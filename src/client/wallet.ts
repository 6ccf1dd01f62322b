/** The wallet's seam: what pays an invoice, whatever it is made of. */

/**
 * Pays invoices. Any object with this one function is a wallet.
 *
 * ```ts
 * const { preimage } = await wallet.pay(quote.bolt11)
 * ```
 */
export type Wallet = {
  /**
   * Pays exactly this BOLT 11 invoice and resolves to its preimage, 64 lower-case hex digits. Asked
   * again for an invoice that it has paid, a wallet pays nothing and resolves to the same preimage.
   * @throws WalletError that says whether money may have left.
   */
  pay(bolt11: string, options?: { signal?: AbortSignal }): Promise<{ preimage: string }>
}

/**
 * A wallet did not say that it paid. `not paid`: nothing left it and nothing will for this attempt.
 * `unknown`: it may be paid yet, so only the order itself tells; never pay another invoice instead.
 *
 * ```ts
 * if (error instanceof WalletError && error.outcome === 'unknown') console.log('poll the order')
 * ```
 */
export class WalletError extends Error {
  override name = 'WalletError'
  readonly outcome: 'not paid' | 'unknown'
  constructor(message: string, outcome: WalletError['outcome'], options?: ErrorOptions) {
    super(message, options)
    this.outcome = outcome
  }
}
