/** Whether a secret may wait for a monitor. */
import type { Db } from '../db/db.ts'
import type { Clock } from '../lib/clock.ts'
import { timesIn } from '../lib/time-list.ts'
import type { MonitorHealth } from '../switches/binding.ts'
import { timedCount } from './history-rows.ts'
import { shortestGapMs } from './schedule.ts'
import { standingAt } from './state.ts'
import { createPulseStore, type MonitorRow } from './store.ts'
import type { Watch } from './watch.ts'

/** A clock that is set each time that the monitor is read is not waited for. */
const MAX_LOOKS = 3

/**
 * The health of a monitor, or null if it is gone. Like its owner, a buyer does not see it late by an outage of the
 * service. A jump of the clock excuses nothing: what is in doubt is not sold.
 */
export async function monitorHealth(
  {
    db,
    clock,
    watch,
  }: { db: Db; clock: Clock; watch: Pick<Watch, 'notice' | 'hasNoticed' | 'fairness'> },
  monitorId: string,
): Promise<MonitorHealth | null> {
  const store = createPulseStore(db)
  let monitor: MonitorRow | null = null
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    await watch.notice()
    monitor = await store.monitor(monitorId)
    if (watch.hasNoticed()) break
  }
  if (!monitor) return null
  const beatsLeft = monitor.heartbeat_limit - monitor.accepted_heartbeat_count
  const { schedule_cron: cron, schedule_time_zone: timeZone } = monitor
  const beatMs =
    cron === ''
      ? monitor.expected_interval_seconds * 1000
      : shortestGapMs({ cron, timeZone }, clock.now())
  return {
    isHealthy:
      monitor.suspended_at === null &&
      standingAt(monitor, clock.now(), { ...watch.fairness(), isHeld: false }).state ===
        'operational',
    expiresAt: monitor.expires_at,
    beatsLastMs: beatsLeft * beatMs,
    pings: timesIn(monitor.recent_heartbeats),
    pingCount: timedCount(monitor),
  }
}
