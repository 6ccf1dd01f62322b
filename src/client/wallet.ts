/** The interface of wallets. */

/**
 * Pays invoices. Any object with this function is a wallet.
 *
 * ```ts
 * const { preimage } = await wallet.pay(quote.bolt11)
 * ```
 */
export type Wallet = {
  /**
   * Pays this BOLT 11 invoice and resolves to its preimage, 64 lower-case hex digits. For an invoice
   * that is already paid, it pays nothing and resolves to the same preimage. `feeMsat` is the fee that was
   * paid, in millisatoshis, if the wallet says so.
   * @throws WalletError whose `outcome` says whether money may have left the wallet.
   */
  pay(bolt11: string, options?: { signal?: AbortSignal }): Promise<WalletPayment>
  /** The most that it may pay as a fee for this amount, both in millisatoshis. */
  maxFeeMsat?(amountMsat: number): number
}

/**
 * A payment that the wallet has made.
 *
 * ```ts
 * const { preimage, feeMsat }: WalletPayment = await wallet.pay(quote.bolt11)
 * ```
 */
export type WalletPayment = { preimage: string; feeMsat?: number }

/**
 * A wallet did not confirm a payment. `not paid`: no money left the wallet, or will for this attempt.
 * `unknown`: the payment may still succeed. Only the order tells; never pay another invoice instead.
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
