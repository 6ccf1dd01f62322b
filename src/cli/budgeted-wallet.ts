/** A wallet that pays within the day's budget. */
import { type Wallet, WalletError } from '../client/wallet.ts'
import { readInvoice } from '../client/wallets/paying.ts'
import { type BudgetOptions, reserve } from './budget.ts'

/** Reserves each payment before the wallet is asked, and takes that back where it certainly did not pay. */
export function budgeted(wallet: Wallet, options: BudgetOptions): Wallet {
  return {
    ...wallet,
    async pay(bolt11, paying) {
      const { paymentHash, amountMsat } = readInvoice(bolt11)
      const maxFeeMsat = wallet.maxFeeMsat?.(amountMsat) ?? 0
      const reservation = reserve(options, { paymentHash, amountMsat, maxFeeMsat })
      try {
        const paid = await wallet.pay(bolt11, paying)
        reservation.settle(paid.feeMsat)
        return paid
      } catch (error) {
        if (error instanceof WalletError && error.outcome === 'not paid') reservation.release()
        throw error
      }
    },
  }
}
