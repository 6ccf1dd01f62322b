/** Core Lightning's `waitanyinvoice`: reports every settlement, one after the other. */

import { NodeError } from '../node/error.ts'
import { type Fields, jsonOf } from '../node/json-fields.ts'
import type { NodeTimeouts } from '../node/node.ts'
import { type Cursor, type FollowOptions, keepFollowing } from '../node/watch.ts'

/** Calls one method. @throws NodeError */
export type ClnCall = (request: {
  /** What the call does, for error messages. */
  what: string
  method: string
  params: Fields
  timeoutMs: number
  signal?: AbortSignal
}) => Promise<Fields>

const NODE = 'Core Lightning'
const read = jsonOf(NODE)

// The JSON-RPC code for a wait that ended without a payment.
const WAITED_LONG_ENOUGH = 904

/**
 * Ends only when `signal` aborts. With a cursor of 0, the node reports every invoice that was ever paid.
 * That happens once, because the cursor advances with each report.
 */
export async function watchCln(
  options: Omit<FollowOptions, 'node' | 'probe'> & {
    call: ClnCall
    cursor: Cursor
    timeouts: NodeTimeouts
  },
  onSettled: (paymentHash: string) => void,
): Promise<void> {
  const { call, cursor, timeouts, signal } = options
  const waitSeconds = Math.max(1, Math.floor(timeouts.probeEveryMs / 1000))
  /** The last `pay_index` that this process has seen. */
  let seen = 0

  async function follow(onAlive: () => void): Promise<never> {
    // Read from the store each time, because it is reset for a new node.
    let payIndex = Math.max(seen, await cursor.read())
    for (;;) {
      signal.throwIfAborted()
      const invoice = await next(payIndex)
      if (invoice === null) {
        onAlive()
        continue
      }
      const index = read.count(invoice, 'pay_index') ?? 0
      if (index <= payIndex) throw read.malformed('pay_index did not grow')
      const paymentHash = read.hash(invoice, 'payment_hash')
      // Only now: a node that keeps saying nonsense is asked less and less often.
      onAlive()
      onSettled(paymentHash)
      payIndex = index
      seen = index
      await cursor.write(index)
    }
  }

  /** The next paid invoice, or null if no invoice was paid for a while. */
  async function next(payIndex: number): Promise<Fields | null> {
    try {
      return await call({
        what: 'waiting for a payment',
        method: 'waitanyinvoice',
        params: { lastpay_index: payIndex, timeout: waitSeconds },
        // A node that hangs does not answer when the wait is over.
        timeoutMs: waitSeconds * 1000 + timeouts.infoMs,
        signal,
      })
    } catch (error) {
      if (error instanceof NodeError && error.answer?.code === WAITED_LONG_ENOUGH) return null
      throw error
    }
  }

  await keepFollowing(follow, { ...options, node: NODE, probe: null })
}
