/** Following a node's word of settlements across restarts and outages, whatever it comes by. */
import { setTimeout as wait } from 'node:timers/promises'
import { NodeError } from './error.ts'

/** The first and the longest pause before a connection is made again. */
export type Retry = { firstMs: number; mostMs: number }

/** Where a stream got to, kept between runs: the node's counter of settlements. */
export type Cursor = { read(): Promise<number>; write(index: number): Promise<void> }

/**
 * Calls `follow` for one connection after the other; ends only when `signal` aborts. `follow` is
 * given what it calls at each sign of life, and throws when its connection is over.
 */
export async function keepFollowing(
  follow: (onAlive: () => void) => Promise<unknown>,
  options: {
    node: string
    retry: Retry
    onWarning: (message: string) => void
    signal: AbortSignal
  },
): Promise<void> {
  const { node, retry, onWarning, signal } = options
  let failures = 0
  while (!signal.aborted) {
    try {
      await follow(() => {
        failures = 0
      })
    } catch (error) {
      if (signal.aborted) return
      // One warning an outage, not one an attempt.
      if (failures === 0) onWarning(`${said(node, error)}; connecting again`)
      failures += 1
    }
    await wait(backoff(retry, failures), undefined, { signal }).catch(() => {})
  }
}

/**
 * A stream may be silent for hours, and the kernel of a frozen node keeps the connection up: only
 * an answer is a sign of life. Any answer will do, a refusal too. Aborts a connection that is dead.
 */
export async function probeUntilDead(
  probe: () => Promise<unknown>,
  everyMs: number,
  connection: AbortController,
  onAlive: () => void,
): Promise<void> {
  const { signal } = connection
  while (!signal.aborted) {
    await wait(everyMs, undefined, { signal, ref: false }).catch(() => {})
    if (signal.aborted) return
    try {
      await probe()
    } catch (error) {
      if (!(error instanceof NodeError) || error.reason !== 'refused') connection.abort(error)
    }
    if (!signal.aborted) onAlive()
  }
}

/** Doubles up to the bound, less up to half at random, so that many clients do not return at once. */
function backoff({ firstMs, mostMs }: Retry, failures: number): number {
  const delay = Math.min(mostMs, firstMs * 2 ** Math.min(Math.max(failures, 1) - 1, 20))
  return delay * (0.5 + Math.random() / 2)
}

function said(node: string, error: unknown): string {
  return error instanceof NodeError ? error.message : `${node}: the cursor or the listener failed`
}
