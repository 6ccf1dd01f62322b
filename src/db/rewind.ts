/** What a clock that went back finds ahead of itself: times of wrong clocks, which would hold up what they pace. */
import type { Statement } from './db.ts'

/** Claims, and times of next looks. One that comes too early sets itself right. */
const PACES = [
  ['lease', 'held_until'],
  ['purchase_order', 'claimed_at'],
  ['purchase_order', 'looked_up_at'],
  ['alert_destination', 'held_until'],
  ['alert_destination', 'due_at'],
  ['alert_destination', 'not_before'],
  ['alert_destination', 'day_started_at'],
  ['alert', 'not_before'],
  ['gate_intent', 'next_verify_at'],
] as const

/** Times of a monitor that follow from its pings and settings, and its next look. */
const OF_MONITORS = [
  'first_ping_at',
  'last_ping_at',
  'rescheduled_at',
  'late_since',
  'failed_at',
  'state_since',
  'check_at',
] as const

/** Sets all that lies ahead of this time to it. */
export const rewind = (now: number): Statement[] => [
  ...PACES.map(([table, column]) => ({
    text: `update ${table} set ${column} = $1 where ${column} > $1`,
    values: [now],
  })),
  {
    text: `update pulse_ping set at = $1 where at > $1
      and public_id in (select public_id from pulse_monitor where last_ping_at > $1)`,
    values: [now],
  },
  // A lateness that lasts is in the monitor's row, too.
  { text: 'delete from pulse_late_spell where began_at > $1', values: [now] },
  { text: 'update pulse_late_spell set ended_at = $1 where ended_at > $1', values: [now] },
  {
    // The revision is another, so that nothing is stored that was computed before.
    text: `update pulse_monitor set revision = revision + 1, ${OF_MONITORS.map(
      (column) => `${column} = case when ${column} > $1 then $1 else ${column} end`,
    ).join(', ')} where ${OF_MONITORS.map((column) => `${column} > $1`).join(' or ')}`,
    values: [now],
  },
]
