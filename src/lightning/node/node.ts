/** What all backends except the simulator have in common. */
import type { Clock } from '../../lib/clock.ts'
import type { InvoiceRequest, Lightning, Network, NodeInfo } from '../lightning.ts'
import type { AccessProblem } from './access.ts'
import { checkInvoice, checkInvoiceRequest } from './check-invoice.ts'

export type LightningNode = Lightning & {
  /** Why Mayfly cannot work with this node, or null. */
  checkAccess(): Promise<AccessProblem | null>
  /** Ends every call and every watch. */
  close(): Promise<void>
}

/** The calls of a node, whose invoices nobody has looked at yet. */
export type NodeCalls = Omit<LightningNode, 'createInvoice'> & {
  createInvoice(request: InvoiceRequest): Promise<{ bolt11: string; paymentHash: string }>
}

/** How long a node may take, in milliseconds. */
export const NODE_TIMEOUTS = {
  connectMs: 5_000,
  createMs: 10_000,
  lookupMs: 5_000,
  infoMs: 5_000,
  /** How often the node is asked for a sign of life while its stream is silent. */
  probeEveryMs: 30_000,
  /** The first and the longest pause before the stream is opened again. */
  retryFirstMs: 250,
  retryMaxMs: 15_000,
}
export type NodeTimeouts = typeof NODE_TIMEOUTS

/**
 * A node by the calls of its interface: what goes in and comes out is checked here.
 * @param amountStepMsat every amount must be a multiple of this.
 */
export function createNode(
  calls: NodeCalls,
  { clock, amountStepMsat = 1 }: { clock: Clock; amountStepMsat?: number },
): LightningNode {
  const closing = new AbortController()
  let network: Network | undefined

  async function info(): Promise<NodeInfo> {
    const found = await calls.info()
    network = found.network
    return found
  }

  return {
    info,

    async createInvoice(request) {
      checkInvoiceRequest(request)
      if (request.amountMsat % amountStepMsat !== 0) {
        throw new RangeError(`amountMsat must be a multiple of ${amountStepMsat}`)
      }
      const expected = network ?? (await info()).network
      const invoice = await calls.createInvoice(request)
      return checkInvoice(invoice, { request, network: expected, now: clock.now() })
    },

    async lookupInvoice(paymentHash) {
      if (!/^[0-9a-f]{64}$/.test(paymentHash)) throw new TypeError('not a payment hash')
      return calls.lookupInvoice(paymentHash)
    },

    watch: (onSettled, signal) => calls.watch(onSettled, AbortSignal.any([signal, closing.signal])),

    checkAccess: calls.checkAccess,

    close() {
      closing.abort()
      return calls.close()
    },
  }
}
