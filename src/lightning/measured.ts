/** Times the calls of a node and reports its state. */
import { type Lightning, type NodeInfo, UnknownInvoice } from './lightning.ts'

export type NodeCall = 'info' | 'create_invoice' | 'lookup_invoice'

export type NodeObserver = {
  /** An invoice that the node has never seen is an answer, not a failure. */
  ended(call: NodeCall, seconds: number, hasFailed: boolean): void
  /** Called with the answer of `info`, or with null if it failed. */
  infoReceived(node: NodeInfo | null): void
}

/** The same node, whose calls are reported to the observer. */
export function measuredLightning<T extends Lightning>(lightning: T, observer: NodeObserver): T {
  async function measured<R>(call: NodeCall, work: () => Promise<R>): Promise<R> {
    const startedAt = performance.now()
    let hasFailed = false
    try {
      return await work()
    } catch (error) {
      hasFailed = !(error instanceof UnknownInvoice)
      throw error
    } finally {
      observer.ended(call, (performance.now() - startedAt) / 1000, hasFailed)
    }
  }
  return {
    ...lightning,
    createInvoice: (request) => measured('create_invoice', () => lightning.createInvoice(request)),
    lookupInvoice: (hash) => measured('lookup_invoice', () => lightning.lookupInvoice(hash)),
    async info() {
      try {
        const node = await measured('info', lightning.info)
        observer.infoReceived(node)
        return node
      } catch (error) {
        observer.infoReceived(null)
        throw error
      }
    },
  }
}
