/** Caches the service's keys, so that receipts can be verified without a request. */
import type { GateKey } from '../protocol/gate-receipt.ts'

/** The service's own caching time for its keys. */
const FRESH_MS = 5 * 60_000
/** How long keys stay valid while the service is unreachable. */
const STALE_MS = 24 * 60 * 60_000
/** The shortest time between two fetches for unknown key ids, so that invented ids cost little. */
const MIN_FETCH_EVERY_MS = 10_000

export type KeyRing = {
  /** The keys, at most five minutes old; while the service is away, at most a day. */
  keys(): Promise<readonly GateKey[]>
  /**
   * The keys as they were at this time or later, for a receipt that came then and names an unknown key.
   * @throws if they were fetched shortly before, or the service is away: the receipt may be by a new key.
   */
  keysSince(time: number): Promise<readonly GateKey[]>
}

type Held = { keys: readonly GateKey[]; askedAt: number; at: number }

/** @param fetchKeys fetches the service's current keys. */
export function createKeyRing(
  fetchKeys: () => Promise<readonly GateKey[]>,
  now: () => number,
): KeyRing {
  let held: Held | null = null
  let askedAt = Number.NEGATIVE_INFINITY
  let fetching: Promise<Held> | null = null

  async function fetchOnce(): Promise<Held> {
    const startedAt = now()
    askedAt = startedAt
    const keys = await fetchKeys()
    held = { keys, askedAt: startedAt, at: now() }
    return held
  }

  function fetched(): Promise<Held> {
    fetching ??= fetchOnce().finally(() => {
      fetching = null
    })
    return fetching
  }

  const isFetchedJustNow = (): boolean => now() - askedAt < MIN_FETCH_EVERY_MS

  return {
    async keys() {
      const age = held ? now() - held.at : Number.POSITIVE_INFINITY
      const isWanted = age > FRESH_MS && (held === null || !isFetchedJustNow())
      try {
        await (isWanted ? fetched() : fetching)
      } catch (error) {
        if (age > STALE_MS) throw error
      }
      if (!held || now() - held.at > STALE_MS) throw new Error('no keys of the service are known')
      return held.keys
    },

    async keysSince(time) {
      if (held !== null && held.askedAt >= time) return held.keys
      // A fetch that began before this time is not enough, whether it has ended or is under way.
      if (askedAt < time && isFetchedJustNow()) throw tooEarly()
      const { keys, askedAt: startedAt } = await fetched()
      if (startedAt < time) throw tooEarly()
      return keys
    },
  }
}

const tooEarly = (): Error => new Error('the keys were fetched before the receipt came')
