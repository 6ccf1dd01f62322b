/**
 * Seals a delivery with the first use of its capability. It remembers which deliveries are sealed, so that
 * only the first use changes the order.
 */
import { LRUCache } from 'lru-cache'
import type { Db, Statement } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { sealDelivery } from './store.ts'

/** Enough for the capabilities in use. A forgotten one is sealed again, which changes nothing. */
const MAX_REMEMBERED = 20_000

export type Sealing = ReturnType<typeof createSealing>

export function createSealing({ db, clock }: { db: Db; clock: Clock }) {
  // Grows as it fills; with `max` it would take all of its memory at once.
  const known = new LRUCache<string, true>({ maxSize: MAX_REMEMBERED, sizeCalculation: () => 1 })
  const sealed = (publicId: string): void => void known.set(publicId, true)

  return {
    /** The statements that a use adds to its unit; an empty list if the delivery is known to be sealed. */
    statements: (publicId: string, now: number): Statement[] =>
      known.has(publicId) ? [] : [sealDelivery(publicId, now)],
    /** Remembers that a unit with those statements was committed. */
    sealed,
    /** Seals the delivery after a use that writes nothing itself. */
    async seal(publicId: string): Promise<void> {
      if (known.has(publicId)) return
      await db.write({
        lockKey: publicId,
        statements: { seal: sealDelivery(publicId, clock.now()) },
      })
      sealed(publicId)
    },
  }
}
