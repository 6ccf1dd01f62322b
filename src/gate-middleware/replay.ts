/** A receipt lets its request in once. */

/** What a guard must do. With several servers, put one on the store that they share. */
export type ReplayGuard = {
  /** Takes the receipt of this id; false where it is taken, or nothing more can be remembered. */
  claim(receiptId: string, expiresAtMs: number): boolean | Promise<boolean>
  /** Gives it back: the request failed on our side, and may be repeated. */
  release(receiptId: string): void | Promise<void>
}

/** Receipts live for five minutes, so that this is 300 a second. */
const REMEMBERED_MOST = 100_000

/** Remembers in this process. Full, it refuses rather than forgets. */
export function createReplayGuard(now: () => number, most = REMEMBERED_MOST): ReplayGuard {
  const taken = new Map<string, number>()

  return {
    claim(receiptId, expiresAtMs) {
      if (taken.has(receiptId)) return false
      // In the order they came, which is nearly the order in which they end.
      for (const [id, until] of taken) {
        if (until > now()) break
        taken.delete(id)
      }
      if (taken.size >= most) return false
      taken.set(receiptId, expiresAtMs)
      return true
    },
    release: (receiptId) => void taken.delete(receiptId),
  }
}
