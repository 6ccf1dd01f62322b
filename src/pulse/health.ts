/** Whether a secret may wait for a monitor, and which ping has armed it. */

import type { ServiceClock } from '../db/clock.ts'
import type { Db } from '../db/db.ts'
import type { MonitorHealth, Monitors } from '../switches/switches.ts'
import { expectedBy, shortestGapMs, timingOf } from './schedule.ts'
import { isFallingSilent, standingAt } from './state.ts'
import { createPulseStore } from './store.ts'

/** Like its owner, a buyer does not see a monitor late by an outage. */
export function createMonitorHealth({
  db,
  clock,
  waitMs,
}: {
  db: Db
  clock: Pick<ServiceClock, 'now' | 'windows'>
  waitMs: number
}): Monitors {
  const store = createPulseStore(db)
  return {
    async health(monitorId): Promise<MonitorHealth | null> {
      const monitor = await store.monitor(monitorId)
      if (!monitor) return null
      const now = clock.now()
      const timing = timingOf(monitor)
      const { cron, timeZone } = timing
      const { expectedAfter, graceMs } = expectedBy(timing, now, monitor.expires_at)
      const beatsLeft = monitor.heartbeat_limit - monitor.accepted_heartbeat_count
      const beatMs =
        cron === ''
          ? monitor.expected_interval_seconds * 1000
          : shortestGapMs({ cron, timeZone }, now)
      return {
        isHealthy:
          monitor.suspended_at === null &&
          standingAt(monitor, now, clock.windows()).state === 'operational',
        expiresAt: monitor.expires_at,
        beatsLastMs: beatsLeft * beatMs,
        opensAfterMs: expectedAfter(now) - now + graceMs + Math.max(graceMs, waitMs),
        isFallingSilent: isFallingSilent(monitor),
        timing: JSON.stringify(timing),
      }
    },

    async pingedAt(monitorId, number): Promise<number | null> {
      const [ping] = await store.pings(monitorId, number, 1)
      return ping && Number(ping.number) === number ? Number(ping.at) : null
    },
  }
}
