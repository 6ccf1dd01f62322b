/**
 * Suspending a monitor: it takes no pings, nobody sees it, and time changes nothing about it. The suspension is a
 * blind window of this monitor alone, so afterwards its deadlines wait as after an outage of the service.
 */
import type { Takedown } from '../http/product.ts'
import type { BlindWindow } from '../lib/windows.ts'
import type { MonitorRow } from './store.ts'

/** A suspension in the column: two times of 13 digits, as `1800000000000-1800000060000 `, the newest first. */
const SUSPENSION = /(\d+)-(\d+) /g
const SUSPENSION_LENGTH = 28
/** An operator who suspends a monitor more often will not resume it. */
const MAX_SUSPENSIONS = 20

/** The revision is another, so that a step which was computed before is refused. */
export const PULSE_TAKEDOWN: Takedown = {
  kind: 'pulse',
  suspend: (publicId, now) => ({
    text: `update pulse_monitor set suspended_at = $2, check_at = null, revision = revision + 1
      where public_id = $1 and suspended_at is null and expires_at > $2`,
    values: [publicId, now],
    expect: 1,
  }),
  // The next scan looks at it.
  resume: (publicId, now) => ({
    text: `update pulse_monitor set suspended_at = null, check_at = $2, revision = revision + 1,
        suspensions = suspended_at || '-'
          || cast(case when suspended_at > $2 then suspended_at else $2 end as bigint) || ' '
          || substr(suspensions, 1, ${(MAX_SUSPENSIONS - 1) * SUSPENSION_LENGTH})
      where public_id = $1 and suspended_at is not null`,
    values: [publicId, now],
    expect: 1,
  }),
}

/** The suspensions of a monitor that are over, in the order of time. */
export const suspensionsOf = ({ suspensions }: Pick<MonitorRow, 'suspensions'>): BlindWindow[] =>
  Array.from(suspensions.matchAll(SUSPENSION), ([, beganAt, endedAt]) => ({
    beganAt: Number(beganAt),
    endedAt: Number(endedAt),
  })).reverse()
