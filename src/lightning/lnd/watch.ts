/** Follows LND's invoice stream across restarts and outages, also of a node that hangs. */

import { NodeError } from '../node/error.ts'
import type { NodeTimeouts } from '../node/node.ts'
import { type Cursor, keepFollowing, probeUntilDead } from '../node/watch.ts'
import { lndError, type SeenInvoice, streamedInvoice } from './answers.ts'
import type { LndHttp } from './http.ts'

export type WatchOptions = {
  http: LndHttp
  cursor: Cursor
  /** Throws unless the node answers in time. */
  probe: () => Promise<unknown>
  timeouts: NodeTimeouts
  onWarning: (message: string) => void
}

type OnSettled = (paymentHash: string) => void

/**
 * Ends only when `signal` aborts. The node replays the settlements after the cursor. It may skip some
 * (lnd#7071), and for a cursor of 0 it replays nothing (lnd#2469), so each report is only a hint.
 */
export async function watchSettlements(
  options: WatchOptions,
  onSettled: OnSettled,
  signal: AbortSignal,
): Promise<void> {
  const seen = { settleIndex: 0 }
  await keepFollowing((onAlive) => follow(options, { seen, onSettled, signal, onAlive }), {
    node: 'LND',
    timeouts: options.timeouts,
    onWarning: options.onWarning,
    signal,
  })
}

type Following = {
  seen: { settleIndex: number }
  onSettled: OnSettled
  signal: AbortSignal
  onAlive: () => void
}

/** Follows one connection until it fails. Never returns, because a stream that ends has failed. */
async function follow(options: WatchOptions, following: Following): Promise<never> {
  const { seen, signal } = following
  // Read from the store each time, because it is reset for a new node.
  const from = Math.max(seen.settleIndex, await options.cursor.read())
  const connection = new AbortController()
  const hangUp = () => connection.abort(signal.reason)
  signal.addEventListener('abort', hangUp)
  if (signal.aborted) hangUp()
  const { probeEveryMs } = options.timeouts
  probeUntilDead(connection, { probe: options.probe, probeEveryMs, onAlive: following.onAlive })
  try {
    const path = `/v1/invoices/subscribe?settle_index=${from}`
    for await (const line of options.http.lines(path, connection.signal)) {
      following.onAlive()
      await handleLine(options, following, line)
    }
    throw lndError('unreachable', 'the invoice stream ended')
  } finally {
    signal.removeEventListener('abort', hangUp)
    connection.abort()
  }
}

async function handleLine(options: WatchOptions, following: Following, line: string) {
  const { seen, onSettled } = following
  const invoice = readable(line)
  // Skipped: on a new connection, the node would send the same line again.
  if (!invoice) return options.onWarning('LND: an event of the invoice stream is unreadable')
  if (invoice.state !== 'settled') return
  onSettled(invoice.paymentHash)
  if (invoice.settleIndex <= seen.settleIndex) return
  seen.settleIndex = invoice.settleIndex
  await options.cursor.write(invoice.settleIndex)
}

function readable(line: string): SeenInvoice | null {
  try {
    return streamedInvoice(line)
  } catch (error) {
    if (error instanceof NodeError && error.reason === 'malformed') return null
    throw error
  }
}
