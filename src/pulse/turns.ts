/**
 * What pings, time and settings make of a monitor, as pure functions: its next facts, what its
 * history has of it, and the changes to tell.
 */
import type { PulseChange } from './changes.ts'
import { chunkBefore, spellsBetween, timedCount } from './history-rows.ts'
import type { HistoryRows, LateSpell } from './history-store.ts'
import { beginRun, endRun } from './runs.ts'
import type { PulseSchedule, PulseState } from './schema.ts'
import {
  type Bound,
  expiringAt,
  isFallingSilent,
  newLateness,
  nextLookAt,
  opensAt,
  standingAt,
  type Windows,
} from './state.ts'
import { type MonitorRow, RECENT_HEARTBEATS, recentWith, type SettingsChange } from './store.ts'

/** What a turn depends on besides the monitor. */
export type Known = {
  now: number
  windows: Windows
  /** What waits for the silence of a monitor that is late; nothing for others. */
  bound: Bound
  /** Nothing final happens now. */
  isHeld: boolean
}

/** How a monitor goes on. */
export type Turn = {
  /** The whole row, with the facts that have changed. */
  next: MonitorRow
  history: HistoryRows
  changes: PulseChange[]
}

/** Pings that come together, or one signal of a run. A `start` is no ping. */
export type Beats =
  | { kind: 'pings'; times: readonly number[]; rid: string | null; isRun: boolean }
  | { kind: 'start'; time: number; rid: string | null }
  | { kind: 'failure'; time: number; rid: string | null; exitCode: number | null }

type Told = Pick<PulseChange, 'type' | 'since'>

/** What beats make of a monitor that accepts them, or null if it does not. */
export function afterBeats(monitor: MonitorRow, beats: Beats, known: Known): Turn | null {
  const { windows } = known
  const times = beats.kind === 'pings' ? beats.times : [beats.time]
  const [first = 0, last = 0] = [times[0], times.at(-1)]
  const count = monitor.accepted_heartbeat_count + times.length
  if (count > monitor.heartbeat_limit || Math.max(...times) >= monitor.expires_at) return null
  const counted = { ...monitor, accepted_heartbeat_count: count }
  const told: Told[] = []
  let ended: ReturnType<typeof endRun> = null
  let chunk: HistoryRows['chunk'] = null
  let next: MonitorRow
  if (beats.kind === 'start') {
    next = {
      ...counted,
      open_runs: beginRun(monitor, { rid: beats.rid, time: first }),
      untimed_heartbeat_count: monitor.untimed_heartbeat_count + 1,
    }
  } else {
    const exitCode = beats.kind === 'failure' ? beats.exitCode : 0
    const isFailure = beats.kind === 'failure'
    const { lateSince } = standingAt(monitor, first, windows)
    if (lateSince !== null && monitor.late_since === null) {
      told.push({ type: 'late', since: lateSince })
    }
    if (isFailure && monitor.failed_at === null) told.push({ type: 'failed', since: first })
    if (!isFailure && (lateSince !== null || monitor.failed_at !== null)) {
      told.push({ type: 'recovered', since: first })
    }
    const isRun = isFailure || beats.isRun
    ended = endRun(monitor, { rid: beats.rid, time: last, exitCode, isRun })
    chunk = chunkBefore(monitor, times)
    next = {
      ...counted,
      ...ended?.runs,
      armed_at: monitor.armed_at ?? first,
      chunk_count: monitor.chunk_count + (chunk ? 1 : 0),
      last_ping_at: last,
      recent_heartbeats: recentWith(monitor.recent_heartbeats, times.slice(-RECENT_HEARTBEATS)),
      late_since: null,
      is_silent: 0,
      failed_at: isFailure ? (monitor.failed_at ?? first) : null,
      // Of the same failure as the time. The last one's is in the last run.
      exit_code: isFailure && monitor.failed_at !== null ? monitor.exit_code : exitCode,
    }
  }
  const warnedAt = warningCount(monitor.heartbeat_limit)
  if (count >= monitor.heartbeat_limit) told.push({ type: 'exhausted', since: last })
  else if (monitor.accepted_heartbeat_count < warnedAt && count >= warnedAt) {
    told.push({ type: 'exhausting', since: last })
  }
  const before = standingAt(monitor, first, windows).state
  const after = standingAt(next, last, windows).state
  if (after === 'exhausted') next.state_since = last
  else if (after !== before) next.state_since = first
  const run = ended && { pingNumber: timedCount(next), ended: ended.ended }
  return turn({
    ...{ monitor, next, known: { ...known, now: last }, told },
    ...{ by: 'ping', at: first, chunk, run },
  })
}

/** What time alone makes of a monitor, or null if it makes nothing new. An expired one may still fall silent. */
export function afterTime(monitor: MonitorRow, known: Known): Turn | null {
  const { now, windows, bound, isHeld } = known
  const told: Told[] = []
  const next = { ...monitor }
  const lateSince = newLateness(monitor, now, windows)
  if (lateSince !== null) {
    next.late_since = lateSince
    told.push({ type: 'late', since: lateSince })
  }
  const opening = isHeld ? null : opensAt(monitor, bound, windows)
  if (opening !== null && now >= opening) {
    next.is_silent = 1
    told.push({ type: 'silent', since: monitor.late_since ?? now })
  }
  const { state } = standingAt(monitor, now, windows)
  const isOver = state === 'expired' || state === 'exhausted'
  if (!isOver && monitor.is_expiry_told === 0 && now >= expiringAt(monitor)) {
    next.is_expiry_told = 1
    told.push({ type: 'expiring', since: now })
  }
  return told.length > 0 ? turn({ monitor, next, known, told, by: null }) : null
}

/**
 * What a change of settings makes of a monitor. A new interval or grace begins to count now, so it makes nobody
 * late, and ends a lateness.
 */
export function afterSettings(monitor: MonitorRow, change: SettingsChange, known: Known): Turn {
  const { now } = known
  const interval = change.expectedIntervalSeconds ?? monitor.expected_interval_seconds
  const grace = change.graceSeconds ?? monitor.grace_seconds
  const next = {
    ...monitor,
    settings_changed_at: now,
    expected_interval_seconds: interval,
    grace_seconds: grace,
  }
  const isChanged =
    interval !== monitor.expected_interval_seconds || grace !== monitor.grace_seconds
  // While there is a schedule, interval and grace are kept and not used.
  return reschedule(monitor, next, {
    known,
    isChanged: isChanged && monitor.schedule_cron === '',
  })
}

/** What a schedule, or null for the interval, makes of a monitor: it counts from now, like a new interval. */
export function afterSchedule(
  monitor: MonitorRow,
  schedule: PulseSchedule | null,
  known: Known,
): Turn {
  const next = {
    ...monitor,
    schedule_cron: schedule?.cron ?? '',
    schedule_time_zone: schedule?.timeZone ?? '',
    schedule_grace_seconds: schedule?.graceSeconds ?? 0,
  }
  return reschedule(monitor, next, { known, isChanged: true })
}

/**
 * A new ping token: the deadline counts from now, so that there is an interval and a grace to give it to the job. A
 * lateness that has begun goes on.
 */
export function afterNewToken(monitor: MonitorRow, known: Known): Turn {
  const { now, windows } = known
  const { lateSince } = standingAt(monitor, now, windows)
  const next = { ...monitor, rescheduled_at: lateSince === null ? now : monitor.rescheduled_at }
  return turn({ monitor, next, known, told: [], by: null })
}

/** New deadlines begin to count now, so they make nobody late, and end a lateness. */
function reschedule(
  monitor: MonitorRow,
  next: MonitorRow,
  { known, isChanged }: { known: Known; isChanged: boolean },
): Turn {
  const { now, windows } = known
  const told: Told[] = []
  if (isChanged) {
    const before = standingAt(monitor, now, windows)
    next.rescheduled_at = now
    if (before.lateSince !== null && before.state === 'late') {
      Object.assign(next, { late_since: null, is_silent: 0 })
      if (monitor.late_since === null) told.push({ type: 'late', since: before.lateSince })
      if (monitor.failed_at === null) {
        told.push({ type: 'recovered', since: now })
        next.state_since = now
      }
    }
  }
  return turn({ monitor, next, known, told, by: 'settings' })
}

/** From this count on, a tenth of the pings is left. */
const warningCount = (limit: number): number => limit - Math.floor(limit / 10)

function turn({
  monitor,
  next,
  known,
  told,
  by,
  at = known.now,
  chunk = null,
  run = null,
}: {
  monitor: MonitorRow
  next: MonitorRow
  known: Known
  told: Told[]
  /** What ends a late spell, and when. */
  by: LateSpell['endedBy']
  at?: number
  chunk?: HistoryRows['chunk']
  run?: HistoryRows['run']
}): Turn {
  const { now, windows } = known
  const { spells, lateMs } = spellsBetween(monitor, next, { at, by, windows })
  next.late_ms = lateMs
  // What waits for a lateness that begins now is read with the next look.
  const isNewlyLate = isFallingSilent(next) && !isFallingSilent(monitor)
  const look = isNewlyLate ? now : nextLookAt(next, now, known)
  // A look that comes too early moves itself. To leave it costs nothing.
  const isSoonEnough =
    look !== null && next.check_at !== null && next.check_at <= look && next.check_at > now
  if (!isSoonEnough) next.check_at = look
  const { state } = standingAt(next, now, windows)
  const changes = told.map(
    ({ type, since }): PulseChange => ({
      ...{ type, since, at: now, monitor },
      publicId: monitor.public_id,
      // Told together with what ended it.
      state: type === 'late' ? 'late' : (state satisfies PulseState),
      lastPingAt: type === 'late' ? monitor.last_ping_at : next.last_ping_at,
      pingCount: timedCount(next),
      exitCode: type === 'failed' ? next.exit_code : null,
    }),
  )
  return { next, history: { spells, chunk, run }, changes }
}
