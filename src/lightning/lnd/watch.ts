/** Follows LND's invoice stream across restarts and outages, also of a node that hangs. */

import { NodeError } from '../node/error.ts'
import { type Cursor, type FollowOptions, keepFollowing } from '../node/watch.ts'
import { lndError, type SeenInvoice, streamedInvoice } from './answers.ts'
import type { LndHttp } from './http.ts'

export type WatchOptions = Omit<FollowOptions, 'node'> & { http: LndHttp; cursor: Cursor }

/**
 * Ends only when `signal` aborts. The node replays the settlements after the cursor. It may skip some
 * (lnd#7071), and for a cursor of 0 it replays nothing (lnd#2469), so each report is only a hint.
 */
export async function watchSettlements(
  { http, cursor, ...options }: WatchOptions,
  onSettled: (paymentHash: string) => void,
): Promise<void> {
  /** The last settlement that this process has seen. */
  let seen = 0

  /** Never returns, because a stream that ends has failed. */
  async function follow(onAlive: () => void, { signal }: AbortController): Promise<never> {
    // Read from the store each time, because it is reset for a new node.
    const from = Math.max(seen, await cursor.read())
    for await (const line of http.lines(`/v1/invoices/subscribe?settle_index=${from}`, signal)) {
      onAlive()
      await handle(line)
    }
    throw lndError('unreachable', 'the invoice stream ended')
  }

  async function handle(line: string): Promise<void> {
    const invoice = readable(line)
    // Skipped: on a new connection, the node would send the same line again.
    if (!invoice) return options.onWarning('LND: an event of the invoice stream is unreadable')
    if (invoice.state !== 'settled') return
    onSettled(invoice.paymentHash)
    if (invoice.settleIndex <= seen) return
    seen = invoice.settleIndex
    await cursor.write(seen)
  }

  await keepFollowing(follow, { ...options, node: 'LND' })
}

function readable(line: string): SeenInvoice | null {
  try {
    return streamedInvoice(line)
  } catch (error) {
    if (error instanceof NodeError && error.reason === 'malformed') return null
    throw error
  }
}
