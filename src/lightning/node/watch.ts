/** Following the settlements that a node reports, across restarts and outages. */
import { setTimeout as wait } from 'node:timers/promises'
import { NodeError } from './error.ts'
import type { NodeTimeouts } from './timeouts.ts'

type RetryTimeouts = Pick<NodeTimeouts, 'retryFirstMs' | 'retryMaxMs'>

/** Where a stream got to, kept between runs: the node's counter of settlements. */
export type Cursor = { read(): Promise<number>; write(index: number): Promise<void> }

/**
 * Calls `follow` for one connection after another; ends only when `signal` aborts. `follow` calls
 * `onAlive` at each sign of life, and throws when its connection is over. A retry library runs one call
 * until it succeeds; this one never does, and each sign of life starts the pauses over.
 */
export async function keepFollowing(
  follow: (onAlive: () => void) => Promise<unknown>,
  options: {
    node: string
    timeouts: RetryTimeouts
    onWarning: (message: string) => void
    signal: AbortSignal
  },
): Promise<void> {
  const { node, timeouts, onWarning, signal } = options
  let failures = 0
  while (!signal.aborted) {
    try {
      await follow(() => {
        failures = 0
      })
    } catch (error) {
      if (signal.aborted) return
      // One warning an outage, not one an attempt.
      if (failures === 0) onWarning(`${outageOf(node, error)}; connecting again`)
      failures += 1
    }
    await wait(backoff(timeouts, failures), undefined, { signal }).catch(() => {})
  }
}

/**
 * A stream may be silent for hours, and the kernel of a frozen node keeps the connection up: only
 * an answer is a sign of life. Any answer will do, a refusal too. Aborts a connection that is dead.
 */
export async function probeUntilDead(
  connection: AbortController,
  {
    probe,
    probeEveryMs,
    onAlive,
  }: { probe: () => Promise<unknown>; probeEveryMs: number; onAlive: () => void },
): Promise<void> {
  const { signal } = connection
  while (!signal.aborted) {
    await wait(probeEveryMs, undefined, { signal, ref: false }).catch(() => {})
    if (signal.aborted) return
    try {
      await probe()
    } catch (error) {
      if (!(error instanceof NodeError) || error.reason !== 'refused') connection.abort(error)
    }
    if (!signal.aborted) onAlive()
  }
}

/** Doubles up to the limit, less up to half at random, so that many clients do not return at once. */
function backoff({ retryFirstMs, retryMaxMs }: RetryTimeouts, failures: number): number {
  const doublings = Math.min(Math.max(failures, 1) - 1, 20)
  const delay = Math.min(retryMaxMs, retryFirstMs * 2 ** doublings)
  return delay * (0.5 + Math.random() / 2)
}

function outageOf(node: string, error: unknown): string {
  return error instanceof NodeError ? error.message : `${node}: the cursor or the listener failed`
}
