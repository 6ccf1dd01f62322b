/** Alarms about a lasting fault: each is logged once an hour, however often a request runs into it. */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'

const REPEAT_MS = 60 * 60 * 1000
/** An alarm that was evicted is logged again too early, which does no harm. */
const MAX_REMEMBERED = 10_000

/** Returns whether to log the alarm about a payment hash now. If so, it counts as logged. */
export function createAlarms(clock: Clock): (paymentHash: string) => boolean {
  const loggedAt = new LRUCache<string, number>({
    maxSize: MAX_REMEMBERED,
    sizeCalculation: () => 1,
  })
  return (paymentHash) => {
    const now = clock.now()
    const last = loggedAt.get(paymentHash)
    if (last !== undefined && now - last < REPEAT_MS) return false
    loggedAt.set(paymentHash, now)
    return true
  }
}
