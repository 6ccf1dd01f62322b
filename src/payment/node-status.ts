/** What the node says about an order's invoice. */
import { type InvoiceStatus, type Lightning, UnknownInvoice } from '../lightning/lightning.ts'

export type NodeStatus = InvoiceStatus | { state: 'unknown'; reason: string }

/**
 * The status of an invoice; `unknown` if the node does not know it.
 * @throws the error of the node when it cannot be reached.
 */
export async function statusAtNode(lightning: Lightning, paymentHash: string): Promise<NodeStatus> {
  try {
    return await lightning.lookupInvoice(paymentHash)
  } catch (error) {
    if (error instanceof UnknownInvoice) return { state: 'unknown', reason: error.message }
    throw error
  }
}
