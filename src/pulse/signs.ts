/**
 * Signs of life: pings with the right token that could not be recorded, because there were too many or the store
 * was away. They count for nothing but a silence, which they end. They are few bytes in memory until the next
 * flush, so that a flood of them costs no write each.
 */
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { noteSign } from './store.ts'

/** How often they reach the store. A silence is confirmed twice as long after its deadline. */
export const SIGNS_EVERY_MS = 5_000
/** Monitors with signs between two flushes. More lose theirs, and are as silent as they seem. */
const MAX_MONITORS = 20_000

export type Signs = {
  note(publicId: string): void
  /** Stores the newest sign of each monitor. What fails is tried again. */
  flush(): Promise<void>
}

export function createSigns({ db, clock }: { db: Db; clock: Clock }): Signs {
  const signs = new Map<string, number>()
  return {
    note(publicId) {
      if (signs.size < MAX_MONITORS || signs.has(publicId)) signs.set(publicId, clock.now())
    },
    async flush() {
      const stored = await Promise.allSettled(
        [...signs].map(async ([publicId, time]) => {
          await db.write({ lockKey: publicId, statements: { sign: noteSign(publicId, time) } })
          if (signs.get(publicId) === time) signs.delete(publicId)
        }),
      )
      for (const one of stored) if (one.status === 'rejected') throw one.reason
    },
  }
}
