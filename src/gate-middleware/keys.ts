/** Caches the service's keys, so that receipts can be verified without a request. */
import type { GateKey } from '../protocol/gate-receipt.ts'

/** The service's own caching time for its keys. */
const FRESH_MS = 5 * 60_000
/** How long keys stay valid while the service is unreachable. */
const STALE_MS = 24 * 60 * 60_000
/** The shortest time between renewals for unknown key ids, so that invented ids cost little. */
const MIN_RENEWAL_MS = 10_000

export type KeyRing = {
  /** The keys. `renewed` fetches them again, for a receipt that names an unknown key. */
  keys(want?: 'cached' | 'renewed'): Promise<readonly GateKey[]>
}

/** @param fetchKeys fetches the service's current keys. */
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
