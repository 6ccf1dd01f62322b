/** The state of an invoice in a wallet's answer to `lookup_invoice` (NIP-47). */
import { provesPayment } from '../../protocol/preimage.ts'
import type { InvoiceStatus } from '../lightning.ts'
import { expiryOf, unpaidStatus } from '../node/check-invoice.ts'
import { type Fields, jsonOf } from '../node/json-fields.ts'

const read = jsonOf('NWC')

/**
 * A missing or unknown state is an error, because an open invoice becomes dead, although the buyer may have
 * paid. Without a state, the time of settlement together with the preimage means settled. The preimage alone
 * proves nothing, since the wallet made it. NIP-47 has no final state for an unpaid invoice: a wallet that
 * reports `expired` may hold an HTLC.
 * @throws NodeError also if the answer is about another invoice.
 */
export function statusOf(
  answer: Fields,
  { paymentHash, now }: { paymentHash: string; now: number },
): InvoiceStatus {
  const isOther = answer.payment_hash !== undefined && answer.payment_hash !== paymentHash
  if (isOther || answer.type === 'outgoing') {
    throw read.malformed('the wallet answered for another invoice')
  }
  const { state } = answer
  if (state === 'settled') return { state: 'settled' }
  const isSettled = (read.count(answer, 'settled_at') ?? 0) > 0
  switch (state) {
    case 'pending':
    case 'expired':
      if (isSettled) throw read.malformed('an invoice is settled and not settled')
      return unpaidStatus(expiresAt(answer), now)
    // The wallet holds an HTLC.
    case 'accepted':
      return { state: 'open' }
    default:
      if (isSettled && isOpenedBy(answer.preimage, paymentHash)) return { state: 'settled' }
      throw read.malformed('an invoice is in an unknown state')
  }
}

function isOpenedBy(preimage: unknown, paymentHash: string): boolean {
  return typeof preimage === 'string' && provesPayment(preimage, paymentHash)
}

function expiresAt({ expires_at: seconds, invoice }: Fields): number | undefined {
  const isTime = Number.isSafeInteger(seconds) && Number(seconds) > 0
  return isTime ? Number(seconds) * 1000 : expiryOf(invoice)
}
