/**
 * What an event makes of a monitor, as one pure function: from its facts come its next facts, its ping, the late spells
 * that begin or end, and the changes that others are notified of.
 */
import { utf8 } from '../lib/bytes.ts'
import type { PulseSchedule, PulseSettings } from './schema.ts'
import { type Known, type Noticed, onward, type Step, standingAt, step } from './state.ts'
import type { MonitorRow, Ping } from './store.ts'

/** What a job sends. Without a rid it has one run at a time. A run that ends without a code has failed. */
export type Signal = { rid: string | null } & (
  | { kind: 'ping' }
  | { kind: 'start' }
  | { kind: 'end'; exitCode: number | null }
)

/** What its owner and its job do to a monitor. A `schedule` of null is the interval. */
export type PulseEvent =
  | Signal
  | { kind: 'settings'; settings: PulseSettings; nextPublicStatusId: string }
  | { kind: 'schedule'; schedule: PulseSchedule | null }
  | { kind: 'ping token'; hash: Uint8Array }

/** How a monitor goes on after an event. Null: it refuses the event. */
export function transition(monitor: MonitorRow, event: PulseEvent, given: Known): Step | null {
  const known = onward(monitor, given)
  if (known.now >= monitor.expires_at) return null
  switch (event.kind) {
    case 'settings':
      return afterSettings(monitor, event, known)
    case 'schedule':
      return afterSchedule(monitor, event.schedule, known)
    case 'ping token':
      return afterNewToken(monitor, event.hash, known)
    default:
      return afterSignal(monitor, event, known)
  }
}

/** What a ping, or a signal of a run, makes of a monitor that accepts it. Each costs a heartbeat; a start is no ping. */
function afterSignal(monitor: MonitorRow, signal: Signal, known: Known): Step | null {
  const { now, windows } = known
  const { heartbeat_limit: limit, accepted_heartbeat_count: before } = monitor
  if (before >= limit) return null
  const next = { ...monitor, accepted_heartbeat_count: before + 1 }
  const noticed: Noticed[] = []
  let ping: Ping | null = null
  if (signal.kind === 'start') next.open_runs = beginRun(monitor, signal.rid, now)
  else {
    const exitCode = signal.kind === 'end' ? signal.exitCode : 0
    const isFailure = exitCode !== 0
    const { lateSince } = standingAt(monitor, now, windows)
    if (lateSince !== null && monitor.late_since === null) {
      noticed.push({ type: 'late', since: lateSince })
    }
    if (isFailure && monitor.failed_at === null) noticed.push({ type: 'failed', since: now })
    if (!isFailure && (lateSince !== null || monitor.failed_at !== null)) {
      noticed.push({ type: 'recovered', since: now })
    }
    const ended = endRun(monitor, signal, now)
    if (ended) Object.assign(next, ended)
    next.ping_count = monitor.ping_count + 1
    next.first_ping_at = monitor.first_ping_at ?? now
    next.last_ping_at = now
    next.late_since = null
    next.is_silent = 0
    next.failed_at = isFailure ? (monitor.failed_at ?? now) : null
    // Of the same failure as the time. The last one's is in the last run.
    next.exit_code = isFailure && monitor.failed_at !== null ? monitor.exit_code : exitCode
    ping = { number: next.ping_count, at: now, run: ended?.last_run ?? null }
  }
  const warnedAt = limit - Math.floor(limit / 10)
  if (before + 1 === limit) noticed.push({ type: 'exhausted', since: now })
  else if (before + 1 === warnedAt) noticed.push({ type: 'exhausting', since: now })
  if (standingAt(next, now, windows).state !== standingAt(monitor, now, windows).state) {
    next.state_since = now
  }
  return step(monitor, next, { known, noticed, ping })
}

function afterSettings(
  monitor: MonitorRow,
  { settings, nextPublicStatusId }: Extract<PulseEvent, { kind: 'settings' }>,
  known: Known,
): Step {
  const { expectedIntervalSeconds, graceSeconds, publicStatusEnabled } = settings
  const next = {
    ...monitor,
    settings_changed_at: known.now,
    name: settings.name === undefined ? monitor.name : utf8(settings.name),
    description:
      settings.description === undefined ? monitor.description : utf8(settings.description),
    expected_interval_seconds: expectedIntervalSeconds ?? monitor.expected_interval_seconds,
    grace_seconds: graceSeconds ?? monitor.grace_seconds,
    public_status_enabled: Number(publicStatusEnabled ?? monitor.public_status_enabled === 1),
  }
  // Whoever knows the address of a status must not see it when it is shared again later. The id that a status shows
  // while it is off is the one that it will be shared under.
  if (monitor.public_status_enabled === 1 && next.public_status_enabled === 0) {
    next.public_status_id = nextPublicStatusId
  }
  const isRescheduled =
    next.expected_interval_seconds !== monitor.expected_interval_seconds ||
    next.grace_seconds !== monitor.grace_seconds
  // While there is a schedule, interval and grace are kept and not used.
  return isRescheduled && monitor.schedule_cron === ''
    ? rescheduled(monitor, next, known)
    : step(monitor, next, { known, noticed: [] })
}

function afterSchedule(
  monitor: MonitorRow,
  schedule: PulseSchedule | null,
  known: Known,
): Step | null {
  if (schedule === null && monitor.schedule_cron === '') return null
  const next = {
    ...monitor,
    schedule_cron: schedule?.cron ?? '',
    schedule_time_zone: schedule?.timeZone ?? '',
    schedule_grace_seconds: schedule?.graceSeconds ?? 0,
  }
  return rescheduled(monitor, next, known)
}

/** New deadlines begin to count now, so they make nobody late, and end a lateness. */
function rescheduled(monitor: MonitorRow, next: MonitorRow, known: Known): Step {
  const { now, windows } = known
  const noticed: Noticed[] = []
  const { lateSince } = standingAt(monitor, now, windows)
  next.rescheduled_at = now
  if (lateSince !== null && standingAt(monitor, now, windows).state === 'late') {
    next.late_since = null
    next.is_silent = 0
    if (monitor.late_since === null) noticed.push({ type: 'late', since: lateSince })
    if (monitor.failed_at === null) {
      noticed.push({ type: 'recovered', since: now })
      next.state_since = now
    }
  }
  return step(monitor, next, { known, noticed })
}

/**
 * The deadline counts from now, so that there is an interval and a grace to give the new token to the job. A lateness
 * that has begun goes on.
 */
function afterNewToken(monitor: MonitorRow, hash: Uint8Array, known: Known): Step {
  const { lateSince } = standingAt(monitor, known.now, known.windows)
  const next = { ...monitor, ping_token_hash: hash }
  if (lateSince === null) next.rescheduled_at = known.now
  return step(monitor, next, { known, noticed: [] })
}

/** Runs that have begun and not ended. The oldest one makes room: its job was probably killed. */
const MAX_OPEN_RUNS = 16

/** Without a rid, a job has one run at a time. */
type OpenRun = [rid: string, startedAt: number]

/** A run that has ended. `startedAt` is null if its start was not sent, `exitCode` if it gave none. */
export type EndedRun = {
  rid: string | null
  startedAt: number | null
  endedAt: number
  hasFailed: boolean
  exitCode: number | null
}

/** The open runs after one more has begun. */
function beginRun(monitor: MonitorRow, rid: string | null, now: number): string {
  const name = rid ?? ''
  const open = openRuns(monitor).filter(([other]) => other !== name)
  return runsText([...open, [name, now] as OpenRun].slice(-MAX_OPEN_RUNS))
}

/** What the end of a run changes. Null: a plain ping ends no run that has not begun. */
function endRun(
  monitor: MonitorRow,
  signal: Exclude<Signal, { kind: 'start' }>,
  now: number,
): Pick<MonitorRow, 'open_runs' | 'last_run'> | null {
  const open = openRuns(monitor)
  const begun = open.find(([other]) => other === (signal.rid ?? ''))
  if (!begun && signal.kind === 'ping') return null
  const exitCode = signal.kind === 'end' ? signal.exitCode : 0
  const ended: EndedRun = {
    rid: signal.rid,
    startedAt: begun?.[1] ?? null,
    endedAt: now,
    hasFailed: exitCode !== 0,
    exitCode,
  }
  return {
    open_runs: runsText(open.filter((run) => run !== begun)),
    last_run: JSON.stringify(ended),
  }
}

export const openRuns = ({ open_runs: text }: MonitorRow): OpenRun[] =>
  text === '' ? [] : JSON.parse(text)

const runsText = (open: OpenRun[]): string => (open.length === 0 ? '' : JSON.stringify(open))
