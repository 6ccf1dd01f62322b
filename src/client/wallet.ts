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
  pay(bolt11: string, options?: { signal?: AbortSignal | undefined }): Promise<WalletPayment>
  /**
   * Which wallet this is, without a secret: its kind, and its node's id or address, such as
   * `lnd 02ab…`. A purchase that one wallet was asked to pay is handed to no other.
   */
  id?(options?: { signal?: AbortSignal | undefined }): Promise<string>
  /**
   * What the wallet knows of its payment of this invoice. It pays nothing. A purchase asks before it hands the
   * invoice over again. A wallet without it knows nothing.
   * @throws WalletError if the wallet cannot be asked.
   */
  lookup?(bolt11: string, options?: { signal?: AbortSignal | undefined }): Promise<WalletAnswer>
  /**
   * Whether the wallet keeps every attempt to pay, and refuses a second payment of one hash: then an invoice that
   * it does not know, long after its expiry, was never paid.
   */
  keepsEveryAttempt?: boolean
  /** The most that it may pay as a fee for this amount, both in millisatoshis. */
  maxFeeMsat?(amountMsat: number): number
}

/** A payment that the wallet has made. */
export type WalletPayment = { preimage: string; feeMsat?: number }

/**
 * What a wallet knows of an invoice. `failed`: no attempt to pay it was under way when it was asked, and none has
 * succeeded. `unknown`: the wallet has no record of it. `bolt11` is the invoice that was paid for this payment hash,
 * where the wallet names it: another one than was asked about is no payment of that.
 */
export type WalletAnswer =
  | { state: 'paid'; preimage: string; feeMsat?: number; bolt11?: string }
  | { state: 'pending' }
  | { state: 'failed' }
  | { state: 'unknown' }

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
