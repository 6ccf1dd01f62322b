/**
 * Suspending a monitor: it takes no pings, nobody sees it, and time changes nothing about it. The suspension is a
 * blind window of this monitor alone, so afterwards its deadlines wait as after an outage of the service.
 */
import type { Statement } from '../db/db.ts'
import type { Takedown } from '../http/product.ts'
import type { BlindWindow } from '../lib/windows.ts'
import { createPulseStore, type MonitorRow } from './store.ts'

/** The newest ones. An operator who suspends a monitor more often will not resume it. */
const MAX_SUSPENSIONS = 20

export const PULSE_TAKEDOWN: Takedown = {
  kind: 'pulse',
  suspend: (publicId, now) => [suspendMonitor(publicId, now)],
  async resume(db, publicId, now) {
    const monitor = await createPulseStore(db).monitor(publicId)
    if (!monitor || monitor.suspended_at === null) return null
    return [resumeMonitor(monitor, monitor.suspended_at, now)]
  },
}

/** The suspensions of a monitor that are over, in the order of time. */
export function suspensionsOf({ suspensions }: Pick<MonitorRow, 'suspensions'>): BlindWindow[] {
  const times: [number, number][] = suspensions === '' ? [] : JSON.parse(suspensions)
  return times.map(([beganAt, endedAt]) => ({ beganAt, endedAt }))
}

/** The revision is another, so that a turn which was computed before is refused. */
const suspendMonitor = (publicId: string, now: number): Statement => ({
  text: `update pulse_monitor set suspended_at = $2, check_at = null, revision = revision + 1
    where public_id = $1 and suspended_at is null and expires_at > $2`,
  values: [publicId, now],
  expect: 1,
})

/** The next scan looks at it. */
const resumeMonitor = (monitor: MonitorRow, suspendedAt: number, now: number): Statement => {
  const ended = { beganAt: suspendedAt, endedAt: Math.max(now, suspendedAt) }
  const times = [...suspensionsOf(monitor), ended]
    .slice(-MAX_SUSPENSIONS)
    .map(({ beganAt, endedAt }) => [beganAt, endedAt])
  return {
    text: `update pulse_monitor
      set suspended_at = null, suspensions = $3, check_at = $4, revision = revision + 1
      where public_id = $1 and revision = $2 and suspended_at is not null`,
    values: [monitor.public_id, monitor.revision, JSON.stringify(times), now],
    expect: 1,
  }
}
