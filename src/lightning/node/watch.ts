/** Follows the settlements that a node reports, across restarts and outages. */
import { setTimeout as wait } from 'node:timers/promises'
import { NodeError } from './error.ts'
import type { NodeTimeouts } from './node.ts'

type RetryTimeouts = Pick<NodeTimeouts, 'retryFirstMs' | 'retryMaxMs'>

/** Follows one connection until it fails. `connection` ends it, and `onAlive` is called at each sign of life. */
type Follow = (onAlive: () => void, connection: AbortController) => Promise<unknown>

export type FollowOptions = {
  node: string
  timeouts: RetryTimeouts & Pick<NodeTimeouts, 'probeEveryMs'>
  onWarning: (message: string) => void
  signal: AbortSignal
  /** Asks a silent connection for a sign of life. Throws unless the node answers in time. Null if none is ever silent. */
  probe: (() => Promise<unknown>) | null
}

/** How far a stream was read, stored between runs: the node's counter of settlements. */
export type Cursor = { read(): Promise<number>; write(index: number): Promise<void> }

/**
 * Calls `follow` for one connection after another, and ends only when `signal` aborts. A retry library would stop when
 * the call succeeds, but this call never succeeds, and each sign of life resets the pause.
 */
export async function keepFollowing(follow: Follow, options: FollowOptions): Promise<void> {
  const { node, timeouts, onWarning, signal, probe } = options
  let failures = 0
  const onAlive = (): void => {
    failures = 0
  }
  while (!signal.aborted) {
    const connection = new AbortController()
    const hangUp = () => connection.abort(signal.reason)
    signal.addEventListener('abort', hangUp)
    if (probe) probeUntilDead(connection, { probe, probeEveryMs: timeouts.probeEveryMs, onAlive })
    try {
      await follow(onAlive, connection)
    } catch (error) {
      if (signal.aborted) return
      // One warning per outage, not per attempt.
      if (failures === 0) onWarning(`${outageOf(node, error)}; connecting again`)
      failures += 1
    } finally {
      signal.removeEventListener('abort', hangUp)
      connection.abort()
    }
    await wait(backoff(timeouts, failures), undefined, { signal }).catch(() => {})
  }
}

/**
 * Aborts a dead connection. A stream may be silent for hours, and the kernel of a frozen node keeps its
 * connection open, so only an answer is a sign of life. A refusal is an answer too.
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

/** Doubles up to the limit, and is up to half shorter at random, so that clients do not return together. */
function backoff({ retryFirstMs, retryMaxMs }: RetryTimeouts, failures: number): number {
  const delay = Math.min(retryMaxMs, retryFirstMs * 2 ** Math.max(failures - 1, 0))
  return delay * (0.5 + Math.random() / 2)
}

function outageOf(node: string, error: unknown): string {
  return error instanceof NodeError ? error.message : `${node}: the cursor or the listener failed`
}
