/**
 * The service looks at itself from outside: what lives may still not be reached, behind a proxy, a name or a
 * certificate that broke. While its own health cannot be read through its public address, pings may not arrive
 * either, so that is a blind window.
 */
import type { ServiceClock } from '../db/clock.ts'
import type { Log } from '../lib/log.ts'
import { isLoopback } from '../protocol/ip-address.ts'

/** Three failures take half a minute. */
export const LOOK_EVERY_MS = 10_000
const FAILURES = 3
/** Shorter than the interval, so that a look under way never swallows the next one. */
const ANSWER_MS = 5_000

/** Whether the service was reached. Never rejects. */
export type Look = () => Promise<boolean>

/** Whether an address leads out of this machine. On loopback there is nothing in between that could break. */
export const isElsewhere = (baseUrl: string): boolean => !isLoopback(new URL(baseUrl).hostname)

/** Looks through the public address. Follows nobody elsewhere. */
export function lookAt(baseUrl: string): Look {
  const url = new URL('/health', baseUrl)
  return async () => {
    try {
      const signal = AbortSignal.timeout(ANSWER_MS)
      const answer = await fetch(url, { redirect: 'manual', signal })
      await answer.body?.cancel()
      return answer.status === 200
    } catch {
      return false
    }
  }
}

/** One look. A service that has never reached itself, as behind some routers, concludes nothing. */
export function createOutsideCheck({
  look,
  clock,
  log,
}: {
  look: Look
  clock: Pick<ServiceClock, 'now' | 'blind'>
  log: Log
}): () => Promise<void> {
  let seenAt: number | null = null
  let failures = 0
  return async () => {
    const isSeen = await look()
    const now = clock.now()
    failures = isSeen ? failures : failures + 1
    if (seenAt !== null && failures >= FAILURES) {
      if (failures === FAILURES && !isSeen) log.warn({ event: 'pulse.unreachable' })
      if (isSeen) log.info({ event: 'pulse.reachable' })
      await clock.blind({ beganAt: seenAt, endedAt: now })
    }
    if (!isSeen) return
    seenAt = now
    failures = 0
  }
}
