/** Alarms that stay true: each is logged once an hour, however often programs cause it. */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'

const REPEAT_MS = 60 * 60 * 1000
/** A forgotten alarm is logged once more than it should be. */
const MAX_REMEMBERED = 10_000

/** Tells whether the alarm about a payment hash is to be logged now, and then counts it as logged. */
export function createAlarms(clock: Clock): (paymentHash: string) => boolean {
  const loggedAt = new LRUCache<string, number>({ max: MAX_REMEMBERED })
  return (paymentHash) => {
    const now = clock.now()
    const last = loggedAt.get(paymentHash)
    if (last !== undefined && now - last < REPEAT_MS) return false
    loggedAt.set(paymentHash, now)
    return true
  }
}
