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
  /** How many fetches have begun. */
  begun(): number
  /**
   * The keys of a later fetch than the first `count`, for a receipt that came when so many had begun, and that names
   * an unknown key.
   * @throws if the last fetch was shortly before, or the service is away: the receipt may be by a new key.
   */
  keysAfter(count: number): Promise<readonly GateKey[]>
}

type Held = { keys: readonly GateKey[]; number: number; at: number }

/**
 * @param fetchKeys fetches the service's current keys.
 * @param now a clock that may be set back: what seems to lie ahead of it was long ago.
 */
export function createKeyRing(
  fetchKeys: () => Promise<readonly GateKey[]>,
  now: () => number,
): KeyRing {
  let held: Held | null = null
  let begun = 0
  let begunAt = Number.NEGATIVE_INFINITY
  let fetching: Promise<Held> | null = null

  async function fetchOnce(): Promise<Held> {
    const number = ++begun
    begunAt = now()
    const keys = await fetchKeys()
    held = { keys, number, at: now() }
    return held
  }

  function fetched(): Promise<Held> {
    fetching ??= fetchOnce().finally(() => {
      fetching = null
    })
    return fetching
  }

  const hasJustBegun = (): boolean => now() >= begunAt && now() - begunAt < MIN_FETCH_EVERY_MS
  const isFresh = ({ at }: Held): boolean => now() >= at && now() - at <= FRESH_MS
  const isValid = ({ at }: Held): boolean => now() - at <= STALE_MS

  return {
    begun: () => begun,

    async keys() {
      const isWanted = held === null || (!isFresh(held) && !hasJustBegun())
      try {
        await (isWanted ? fetched() : fetching)
      } catch (error) {
        if (held === null || !isValid(held)) throw error
      }
      if (held === null || !isValid(held)) throw new Error('no keys of the service are known')
      return held.keys
    },

    async keysAfter(count) {
      if (held !== null && held.number > count) return held.keys
      // A fetch that began before is not enough, whether it has ended or is under way.
      if (begun <= count && hasJustBegun()) throw tooEarly()
      const { keys, number } = await fetched()
      if (number <= count) throw tooEarly()
      return keys
    },
  }
}

const tooEarly = (): Error => new Error('the keys were fetched before the receipt came')
