/** Remembers which receipts were used, so that each lets one request in. */

/**
 * Where the middleware remembers. With several servers behind one name, a store that they share.
 *
 * ```ts
 * const store: ReplayStore = {
 *   add: async (key, ttlMs) => (await redis.set(key, '1', 'PX', ttlMs, 'NX')) === 'OK',
 * }
 * ```
 */
export type ReplayStore = {
  /**
   * Remembers a key for so long; false where it is remembered already. One atomic step: of any
   * number of callers at once, one gets true. A throw lets nobody in.
   */
  add(key: string, ttlMs: number): boolean | Promise<boolean>
  /**
   * Unix milliseconds since when it has every key whose time is not over, of all servers. Only a
   * store that cannot lose one without this moving on may say it. A receipt that ran out after that
   * and has no key let nobody in, so that it is given back; without it, none is.
   */
  since?(): number | Promise<number>
}

/** Some 100 bytes each. */
const MAX_REMEMBERED = 500_000
/** A receipt lets nobody in any more by then, with clocks that differ. */
const RECEIPT_OVER_MS = 15 * 60_000

/**
 * Remembers in this process, and does not say since when: another process may have let somebody in,
 * such as the previous one while it ends its last requests. When full it forgets the oldest keys, whose
 * receipts are over; where every key is too young for that, it refuses rather than forgets.
 */
export function memoryStore(now: () => number = Date.now, maxKeys = MAX_REMEMBERED): ReplayStore {
  /** When each was added and ends, in the order they came. */
  const taken = new Map<string, { at: number; until: number }>()

  return {
    add(key, ttlMs) {
      const known = taken.get(key)
      if (known && known.until > now()) return false
      for (const [old, { at, until }] of taken) {
        const isForgettable = taken.size >= maxKeys && at + RECEIPT_OVER_MS < now()
        if (until > now() && !isForgettable) break
        taken.delete(old)
      }
      if (taken.size >= maxKeys) return false
      taken.delete(key)
      taken.set(key, { at: now(), until: now() + ttlMs })
      return true
    },
  }
}
