/** The service's keys, kept at hand so that receipts are verified without asking it each time. */
import type { GateKey } from '../protocol/gate-receipt.ts'

/** As long as the service lets its keys be cached. */
const FRESH_MS = 5 * 60_000
/** A service that is unreachable does not invalidate its receipts at once. */
const STALE_MS = 24 * 60 * 60_000
/** An unknown key renews the ring this often at most, so that made-up key ids cost nothing. */
const MIN_RENEWAL_MS = 10_000

export type KeyRing = {
  /** The keys; `renewed` are those of now, where a receipt names one that was not known. */
  keys(want?: 'cached' | 'renewed'): Promise<readonly GateKey[]>
}

/** @param fetchKeys the keys as the service shows them now. */
export function createKeyRing(
  fetchKeys: () => Promise<readonly GateKey[]>,
  now: () => number,
): KeyRing {
  let held: { keys: readonly GateKey[]; at: number } | null = null
  let renewedAt = Number.NEGATIVE_INFINITY
  let renewing: Promise<void> | null = null

  async function renew(): Promise<void> {
    renewedAt = now()
    const keys = await fetchKeys()
    held = { keys, at: now() }
  }

  return {
    async keys(want = 'cached') {
      const age = held ? now() - held.at : Number.POSITIVE_INFINITY
      const isWanted = want === 'renewed' || age > FRESH_MS
      if (isWanted && (held === null || now() - renewedAt >= MIN_RENEWAL_MS)) {
        renewing ??= renew().finally(() => {
          renewing = null
        })
      }
      try {
        await renewing
      } catch (error) {
        if (age > STALE_MS) throw error
      }
      if (!held || now() - held.at > STALE_MS) throw new Error('no keys of the service are known')
      return held.keys
    },
  }
}
