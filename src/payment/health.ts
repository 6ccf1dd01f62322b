/** Whether the node can take money now. Sales stop and resume by this alone. */
import { messageOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import type { Lightning, Network } from '../lightning/lightning.ts'

const PROBE_EVERY_MS = 5_000

export type NodeHealth = {
  isHealthy(): boolean
  /** A call has just failed: stop selling until the node has answered again. */
  doubt(): void
  /** Asks the node now, and again every few seconds until `signal` aborts. */
  start(signal: AbortSignal): Promise<void>
}

/** Notes the node that answers; gives the one before it, where that was another. */
export type NoteNode = (nodeId: string) => Promise<string | null>

/**
 * @param network what the store belongs to; a node that comes back on another sells nothing.
 * @param noteNode is asked when a node answers first, and when another one does. Operators replace nodes:
 * it is said, and stops nothing.
 */
export function createNodeHealth(
  lightning: Lightning,
  network: Network,
  log: Log,
  noteNode: NoteNode = async () => null,
): NodeHealth {
  /** Why nothing is sold, or null while the node takes money; undefined until it was asked. */
  let closedFor: string | null | undefined
  let probing: Promise<void> | null = null
  let notedId: string | null = null

  function report(reason: string | null): void {
    if (reason === closedFor) return
    closedFor = reason
    if (reason === null) log.info({ event: 'checkout.open' })
    else log.warn({ event: 'checkout.closed', reason })
  }

  async function probe(): Promise<void> {
    try {
      const node = await lightning.info()
      if (node.network === network && node.nodeId !== null) await note(node.nodeId)
      if (node.network !== network) report(`the node is on ${node.network}`)
      else report(node.synced ? null : 'the node is not in sync with the chain')
    } catch (error) {
      report(messageOf(error))
    }
  }

  /** What the store cannot take now is noted with the next probe, and closes no checkout. */
  async function note(nodeId: string): Promise<void> {
    if (nodeId === notedId) return
    try {
      const previousNodeId = await noteNode(nodeId)
      notedId = nodeId
      if (previousNodeId !== null) {
        log.warn({ event: 'lightning.node_changed', previousNodeId, nodeId })
      }
    } catch (error) {
      log.warn({ event: 'lightning.node_not_noted', reason: messageOf(error) })
    }
  }

  function probeOnce(): Promise<void> {
    probing ??= probe().finally(() => {
      probing = null
    })
    return probing
  }

  return {
    isHealthy: () => closedFor === null,
    doubt() {
      if (closedFor === null) report('an invoice could not be made')
      void probeOnce()
    },
    async start(signal) {
      await probeOnce()
      const timer = setInterval(() => void probeOnce(), PROBE_EVERY_MS)
      signal.addEventListener('abort', () => clearInterval(timer), { once: true })
    },
  }
}
