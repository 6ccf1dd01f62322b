/** Remembers which receipts were used, so that each lets one request in. */

/**
 * Where the middleware remembers used receipts. Several servers behind one name must share a store.
 *
 * ```ts
 * const store: ReplayStore = {
 *   add: async (key, ttlMs) => (await redis.set(key, '1', 'PX', ttlMs, 'NX')) === 'OK',
 * }
 * ```
 */
export type ReplayStore = {
  /**
   * Adds a key for `ttlMs` milliseconds. Returns false if the store has it. Must be atomic: of
   * concurrent callers with one key, exactly one gets true. If it throws, the visit is refused.
   */
  add(key: string, ttlMs: number): boolean | Promise<boolean>
  /**
   * The time (unix milliseconds) since which the store has every unexpired key of all servers. A store
   * that can lose keys without advancing this time must not implement it. It proves that an expired
   * receipt without a key was never used, so that it can be given back.
   */
  since?(): number | Promise<number>
}

/** The maximum of remembered keys, of about 100 bytes each. */
const MAX_REMEMBERED = 500_000
/** The age at which a receipt has certainly expired, clock skew included. */
const RECEIPT_OVER_MS = 15 * 60_000

/**
 * A store in the memory of this process. It has no `since`, because another process may have admitted
 * requests, such as the previous one during its shutdown. When full, it forgets the oldest keys whose
 * receipts have expired. If there are none, it refuses new keys.
 */
export function memoryStore(now: () => number = Date.now, maxKeys = MAX_REMEMBERED): ReplayStore {
  /** When each key was added and when it expires, in order of addition. */
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
