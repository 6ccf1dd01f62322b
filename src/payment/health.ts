/** Whether the node can take payments now. Nothing else stops and resumes sales. */
import { messageOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import type { Lightning, Network } from '../lightning/lightning.ts'

const PROBE_EVERY_MS = 5_000

export type NodeHealth = ReturnType<typeof createNodeHealth>

/** Stores the id of the node that answers; resolves to the previous one if that was another node. */
export type NoteNode = (nodeId: string) => Promise<string | null>

export function createNodeHealth({
  lightning,
  network,
  log,
  noteNode = async () => null,
}: {
  lightning: Lightning
  /** The network that the store belongs to. Nothing is sold while the node is on another one. */
  network: Network
  log: Log
  /** Called with the first node that answers, and with each other one: operators replace nodes. */
  noteNode?: NoteNode
}) {
  /** Why nothing is sold, or null while the node takes payments; undefined before the first answer. */
  let closedFor: string | null | undefined
  let probing: Promise<void> | null = null
  let nodeId: string | null = null
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
      if (node.network === network) nodeId = node.nodeId
      if (node.network === network && node.nodeId !== null) await note(node.nodeId)
      if (node.network !== network) report(`the node is on ${node.network}`)
      else report(node.synced ? null : 'the node is not in sync with the chain')
    } catch (error) {
      report(messageOf(error))
    }
  }

  /** If the store fails, the next probe tries again; that does not stop sales. */
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
    isHealthy: (): boolean => closedFor === null,
    /** The public key that signs our invoices, in hex. Null until the node has named it, and if others share it. */
    nodeId: (): string | null => nodeId,
    /** Reports that a call has just failed: sales stop until the node answers again. */
    doubt(): void {
      if (closedFor === null) report('an invoice could not be made')
      void probeOnce()
    },
    /** Asks the node now, and again every few seconds until `signal` aborts. */
    async start(signal: AbortSignal): Promise<void> {
      await probeOnce()
      const timer = setInterval(() => void probeOnce(), PROBE_EVERY_MS)
      signal.addEventListener('abort', () => clearInterval(timer), { once: true })
    },
  }
}
