/** LND's invoice stream, followed across restarts, outages and a node that only looks alive. */
import { setTimeout as wait } from 'node:timers/promises'
import { type SeenInvoice, streamedInvoice } from './lnd-answers.ts'
import { LndError } from './lnd-error.ts'
import type { LndHttp } from './lnd-http.ts'

/** Where the last stream got to, kept between runs: the node's settlement counter. */
export type Cursor = { read(): Promise<number>; write(settleIndex: number): Promise<void> }

export type WatchOptions = {
  http: LndHttp
  cursor: Cursor
  /** Throws unless the node answers in time. */
  probe: () => Promise<unknown>
  probeEveryMs: number
  retry: { firstMs: number; mostMs: number }
  onWarning: (message: string) => void
}

type OnSettled = (paymentHash: string) => void

/**
 * Ends only when `signal` aborts. The node replays what settled after the cursor, except that a
 * cursor of 0 replays nothing (lnd#2469), and it may leave gaps (lnd#7071): this is a hint.
 */
export async function watchSettlements(
  options: WatchOptions,
  onSettled: OnSettled,
  signal: AbortSignal,
): Promise<void> {
  const seen = { settleIndex: 0 }
  let failures = 0
  while (!signal.aborted) {
    try {
      await follow(options, { seen, onSettled, signal, onAlive: () => (failures = 0) })
    } catch (error) {
      if (signal.aborted) return
      // One warning an outage, not one an attempt.
      if (failures === 0) options.onWarning(`${said(error)}; connecting again`)
      failures += 1
    }
    await wait(backoff(options.retry, failures), undefined, { signal }).catch(() => {})
  }
}

type Following = {
  seen: { settleIndex: number }
  onSettled: OnSettled
  signal: AbortSignal
  onAlive: () => void
}

/** One connection, until it fails: it never returns, for a stream that ends has failed. */
async function follow(options: WatchOptions, following: Following): Promise<never> {
  const { seen, signal } = following
  seen.settleIndex = Math.max(seen.settleIndex, await options.cursor.read())
  const connection = new AbortController()
  const hangUp = () => connection.abort(signal.reason)
  signal.addEventListener('abort', hangUp)
  if (signal.aborted) hangUp()
  probeUntilDead(options, connection, following.onAlive)
  try {
    const path = `/v1/invoices/subscribe?settle_index=${seen.settleIndex}`
    for await (const line of options.http.lines(path, connection.signal)) {
      following.onAlive()
      await heed(options, following, line)
    }
    throw new LndError('unreachable', 'the invoice stream ended')
  } finally {
    signal.removeEventListener('abort', hangUp)
    connection.abort()
  }
}

async function heed(options: WatchOptions, following: Following, line: string | null) {
  const { seen, onSettled } = following
  const invoice = readable(line)
  // Left out, not fatal: on a new connection the node would only send the same line again.
  if (!invoice) return options.onWarning('LND: an event of the invoice stream is unreadable')
  if (invoice.state !== 'settled') return
  onSettled(invoice.paymentHash)
  if (invoice.settleIndex <= seen.settleIndex) return
  seen.settleIndex = invoice.settleIndex
  await options.cursor.write(invoice.settleIndex)
}

function readable(line: string | null): SeenInvoice | null {
  if (line === null) return null
  try {
    return streamedInvoice(line)
  } catch (error) {
    if (error instanceof LndError && error.reason === 'malformed') return null
    throw error
  }
}

/**
 * A stream may be silent for hours, and the kernel of a frozen node keeps the connection up: only
 * an answer is a sign of life. Any answer will do, a refusal too.
 */
async function probeUntilDead(
  { probe, probeEveryMs }: WatchOptions,
  connection: AbortController,
  onAlive: () => void,
): Promise<void> {
  const { signal } = connection
  while (!signal.aborted) {
    await wait(probeEveryMs, undefined, { signal, ref: false }).catch(() => {})
    if (signal.aborted) return
    try {
      await probe()
    } catch (error) {
      if (!(error instanceof LndError) || error.reason !== 'refused') connection.abort(error)
    }
    if (!signal.aborted) onAlive()
  }
}

/** Doubles up to the bound, less up to half at random, so that many clients do not return at once. */
function backoff({ firstMs, mostMs }: WatchOptions['retry'], failures: number): number {
  const delay = Math.min(mostMs, firstMs * 2 ** Math.min(failures - 1, 20))
  return delay * (0.5 + Math.random() / 2)
}

function said(error: unknown): string {
  return error instanceof LndError ? error.message : 'LND: the cursor or the listener failed'
}
