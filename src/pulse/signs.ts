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
/** Signs between two flushes. More are lost, and their monitors are as silent as they seem. */
const MAX_SIGNS = 20_000
/** Of these, nobody knows yet whether the token is right. Guesses must leave places for the others. */
const MAX_UNPROVEN = 10_000

/** A ping. The store accepts its sign only if the token is the monitor's. */
export type Sign = { publicId: string; pingTokenHash: Uint8Array }

export type Signs = {
  /** Notes a ping whose token is right. */
  note(sign: Sign): void
  /** Notes a ping whose token could not be checked, because the store was away. */
  noteUnproven(sign: Sign): void
  /** Stores the newest sign of each monitor. What fails is tried again. */
  flush(): Promise<void>
}

export function createSigns({ db, clock }: { db: Db; clock: Clock }): Signs {
  const signs = new Map<string, Sign & { time: number }>()

  function add(sign: Sign, most: number): void {
    const key = `${sign.publicId} ${Buffer.from(sign.pingTokenHash).toString('base64')}`
    if (signs.size < most || signs.has(key)) signs.set(key, { ...sign, time: clock.now() })
  }

  return {
    note: (sign) => add(sign, MAX_SIGNS),
    noteUnproven: (sign) => add(sign, MAX_UNPROVEN),
    async flush() {
      const stored = await Promise.allSettled(
        [...signs].map(async ([key, sign]) => {
          await db.write({ lockKey: sign.publicId, statements: { sign: noteSign(sign) } })
          if (signs.get(key) === sign) signs.delete(key)
        }),
      )
      for (const one of stored) if (one.status === 'rejected') throw one.reason
    },
  }
}
