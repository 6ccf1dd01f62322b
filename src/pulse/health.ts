/** Whether a secret may wait for a monitor. */
import type { Db } from '../db/db.ts'
import type { ServiceClock } from '../lib/clock.ts'
import { timesIn } from '../lib/time-list.ts'
import type { MonitorHealth } from '../switches/binding.ts'
import { timedCount } from './history-rows.ts'
import { shortestGapMs } from './schedule.ts'
import { expectedBy, isFallingSilent, standingAt, timingOf } from './state.ts'
import { createPulseStore } from './store.ts'

/** The health of a monitor, or null if it is gone. Like its owner, a buyer does not see it late by an outage. */
export async function monitorHealth(
  { db, clock, waitMs }: { db: Db; clock: Pick<ServiceClock, 'now' | 'windows'>; waitMs: number },
  monitorId: string,
): Promise<MonitorHealth | null> {
  const monitor = await createPulseStore(db).monitor(monitorId)
  if (!monitor) return null
  const now = clock.now()
  const timing = timingOf(monitor)
  const { expectedAfter, graceMs } = expectedBy(timing, now, monitor.expires_at)
  const beatsLeft = monitor.heartbeat_limit - monitor.accepted_heartbeat_count
  const { schedule_cron: cron, schedule_time_zone: timeZone } = monitor
  const beatMs =
    cron === '' ? monitor.expected_interval_seconds * 1000 : shortestGapMs({ cron, timeZone }, now)
  return {
    isHealthy:
      monitor.suspended_at === null &&
      standingAt(monitor, now, clock.windows()).state === 'operational',
    expiresAt: monitor.expires_at,
    beatsLastMs: beatsLeft * beatMs,
    opensAfterMs: expectedAfter(now) - now + graceMs + Math.max(graceMs, waitMs),
    isFallingSilent: isFallingSilent(monitor),
    timing: JSON.stringify(timing),
    pings: timesIn(monitor.recent_heartbeats),
    pingCount: timedCount(monitor),
  }
}
