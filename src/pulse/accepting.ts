/**
 * The statements that accept pings which change nothing but the counter and the times of a monitor. The newest times
 * stand in the monitor's row. A hundred that leave it become a chunk of the history, in the same unit.
 */
import type { Statement } from '../db/db.ts'
import { TIME_DIGITS } from '../lib/time-list.ts'
import { CHUNK_PINGS } from './history-store.ts'
import type { MonitorFacts } from './jobs.ts'
import { RECENT_HEARTBEATS, recentWith } from './store.ts'

/** More would push more times out of the row than one chunk has. */
export const PINGS_TOGETHER = Math.min(64, RECENT_HEARTBEATS)

const ROW_DIGITS = RECENT_HEARTBEATS * TIME_DIGITS
const CHUNK_DIGITS = CHUNK_PINGS * TIME_DIGITS

/** The deadline without blind windows, which is never later than the fair one. */
const deadlineAfter = (ping: string): string =>
  `(case when rescheduled_at > ${ping} then rescheduled_at else ${ping} end)
  + (expected_interval_seconds + grace_seconds) * 1000`
/** From this count on, a tenth of the pings is left. */
const WARNED = 'heartbeat_limit - heartbeat_limit / 10'
/** How many times are in no chunk. */
const LOOSE = `accepted_heartbeat_count - untimed_heartbeat_count - chunk_count * ${CHUNK_PINGS}`

const COUNT = `update pulse_monitor
  set accepted_heartbeat_count = accepted_heartbeat_count + $2,
      last_ping_at = $4`
/**
 * Holds if the monitor is operational before and after the pings by its interval, and nobody is to be told. A next look
 * that comes after the new deadline is of a clock that was ahead, and a turn moves it.
 */
const CHANGES_NOTHING_ELSE = `where public_id = $1 and expires_at > $5 and suspended_at is null
    and late_since is null and failed_at is null and open_runs = '' and schedule_cron = ''
    and ${deadlineAfter('last_ping_at')} > $3 and check_at <= ${deadlineAfter('$4')} and ping_token_hash = $7
    and (accepted_heartbeat_count + $2 < ${WARNED}
      or (accepted_heartbeat_count >= ${WARNED} and accepted_heartbeat_count + $2 < heartbeat_limit))`

const ACCEPT = `${COUNT},
      recent_heartbeats = substr($6 || recent_heartbeats, 1, ${ROW_DIGITS})
  ${CHANGES_NOTHING_ELSE} and ${LOOSE} + $2 <= ${RECENT_HEARTBEATS}`

/** While all loose times do not fit, the row holds them beyond its bound for the rest of the unit. */
const ACCEPT_AND_COUNT_CHUNK = `${COUNT},
      chunk_count = case when ${LOOSE} + $2 > ${RECENT_HEARTBEATS} then chunk_count + 1 else chunk_count end,
      recent_heartbeats = substr($6 || recent_heartbeats, 1,
        case when ${LOOSE} + $2 > ${RECENT_HEARTBEATS}
          then cast(${LOOSE} + $2 as integer) * ${TIME_DIGITS} else ${ROW_DIGITS} end)
  ${CHANGES_NOTHING_ELSE} and ${LOOSE} + $2 <= ${RECENT_HEARTBEATS + CHUNK_PINGS}
  returning ${LOOSE} as loose`

/** The oldest times of a row that holds more than its bound. */
const INSERT_CHUNK = `insert into pulse_ping_chunk (public_id, position, times)
  select public_id, chunk_count - 1, substr(recent_heartbeats, length(recent_heartbeats) - ${CHUNK_DIGITS - 1})
  from pulse_monitor where public_id = $1 and length(recent_heartbeats) > ${ROW_DIGITS}`

const CUT_ROW = `update pulse_monitor set recent_heartbeats = substr(recent_heartbeats, 1, ${ROW_DIGITS})
  where public_id = $1 and length(recent_heartbeats) > ${ROW_DIGITS}`

/**
 * Accepts pings with this token at these times, in their order. The times are in the monitor's row, so this is one
 * statement, and the counter and the times always agree. It refuses pings that would push a time out of the row that
 * no chunk has.
 */
export const acceptPings = (job: MonitorFacts, times: readonly number[]): Statement => ({
  text: ACCEPT,
  values: valuesOf(job, times),
  expect: 1,
})

/**
 * The same for pings that may push out such a time: if they do, a chunk is filed. `pings` returns how many times are
 * `loose` then, in no chunk. It must be the first statement of its unit: one that it refuses costs other units nothing.
 */
export const acceptAndFile = (
  job: MonitorFacts,
  times: readonly number[],
): Record<'pings' | 'chunk' | 'row', Statement> => ({
  pings: { text: ACCEPT_AND_COUNT_CHUNK, values: valuesOf(job, times), expect: 1 },
  chunk: { text: INSERT_CHUNK, values: [job.publicId] },
  row: { text: CUT_ROW, values: [job.publicId] },
})

function valuesOf(
  { publicId, pingTokenHash }: MonitorFacts,
  times: readonly number[],
): Statement['values'] {
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0]
  return [
    ...[publicId, times.length, first, last, Math.max(...times), recentWith('', times)],
    pingTokenHash,
  ]
}
