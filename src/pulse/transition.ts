/**
 * What an event, or time alone, makes of a monitor, as pure functions: from its facts come its next facts, its ping, the
 * late spell that ends, and the changes that others are notified of. Times are unix milliseconds.
 */
import { utf8 } from '../lib/bytes.ts'
import type { PulseSchedule, PulseSettings, PulseState } from './schema.ts'
import {
  type Bound,
  expiringAt,
  newLateness,
  nextLookAt,
  opensAt,
  standingAt,
  type Windows,
} from './state.ts'
import { type LateSpell, type MonitorRow, type Ping, scheduleText } from './store.ts'

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

/** What a step depends on besides the monitor. */
export type Known = {
  now: number
  windows: Windows
  /** What waits for the silence of a monitor that is late; nothing for others. */
  bound: Bound
  /** Nothing final happens now. */
  isHeld: boolean
}

/**
 * `late`: no ping came in time. `silent`: the lateness lasted until it opens what waits for it. `recovered`: the first
 * good ping after `late` or `failed`, or a change of settings that ends a lateness. `failed`: a run reported a failure,
 * and the last one had not. `exhausting`: a tenth of the pings is left. `exhausted`: the last ping was accepted.
 * `expiring`: the monitor ends soon.
 */
export type ChangeType =
  | 'late'
  | 'silent'
  | 'recovered'
  | 'failed'
  | 'exhausting'
  | 'exhausted'
  | 'expiring'

export type PulseChange = {
  type: ChangeType
  /** When it was noticed. */
  at: number
  /** Since when it is so: the deadline of `late` and `silent`, otherwise `at`. */
  since: number
  /** The state after the change, as the owner sees it. */
  state: PulseState
  /** The monitor after the change; before it for `late`, which may be noticed together with what ended it. */
  monitor: MonitorRow
  /** When a lateness that begins will open what waits for it, if no ping comes; null if nothing waits. */
  opensAt: number | null
}

export type Step = {
  /** The whole row, with the facts that have changed. */
  monitor: MonitorRow
  ping: Ping | null
  /** The lateness that ends with it. */
  spell: LateSpell | null
  changes: PulseChange[]
}

type Noticed = Pick<PulseChange, 'type' | 'since'>

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
  return isRescheduled && monitor.schedule === ''
    ? rescheduled(monitor, next, known)
    : step(monitor, next, { known, noticed: [] })
}

function afterSchedule(
  monitor: MonitorRow,
  schedule: PulseSchedule | null,
  known: Known,
): Step | null {
  if (schedule === null && monitor.schedule === '') return null
  return rescheduled(monitor, { ...monitor, schedule: scheduleText(schedule) }, known)
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

/** A look that has to wait, because the clock is held, is repeated after this time. */
const LOOK_AGAIN_MS = 10_000

/** What time alone makes of a monitor. An expired one may still fall silent. */
export function afterTime(monitor: MonitorRow, given: Known): Step {
  const known = onward(monitor, given)
  const { now, windows, bound, isHeld } = known
  const next = { ...monitor }
  const noticed: Noticed[] = []
  const lateSince = newLateness(monitor, now, windows)
  if (lateSince !== null) {
    next.late_since = lateSince
    noticed.push({ type: 'late', since: lateSince })
  }
  const opening = isHeld ? null : opensAt(monitor, bound, windows)
  if (opening !== null && now >= opening) {
    next.is_silent = 1
    noticed.push({ type: 'silent', since: monitor.late_since ?? now })
  }
  const { state } = standingAt(monitor, now, windows)
  const isOver = state === 'expired' || state === 'exhausted'
  if (!isOver && monitor.is_expiry_told === 0 && now >= expiringAt(monitor)) {
    next.is_expiry_told = 1
    noticed.push({ type: 'expiring', since: now })
  }
  const after = step(monitor, next, { known, noticed })
  if (next.check_at !== null && next.check_at <= now) next.check_at = now + LOOK_AGAIN_MS
  return after
}

/**
 * The time of a monitor never goes back: the clocks of two instances differ a little, and a ping through one of them must
 * not come before the lateness that the other one has stored.
 */
function onward(monitor: MonitorRow, known: Known): Known {
  const { last_ping_at, late_since, failed_at, rescheduled_at } = monitor
  const latest = Math.max(last_ping_at ?? 0, late_since ?? 0, failed_at ?? 0, rescheduled_at)
  return latest <= known.now ? known : { ...known, now: latest }
}

/** From a monitor to its next facts: when to look at it again, the spell that ends and the changes. */
function step(
  monitor: MonitorRow,
  next: MonitorRow,
  { known, noticed, ping = null }: { known: Known; noticed: Noticed[]; ping?: Ping | null },
): Step {
  const { now, windows } = known
  const look = nextLookAt(next, now, known)
  // A look that comes too early moves itself. To leave it costs nothing.
  const isSoonEnough =
    look !== null && next.check_at !== null && next.check_at <= look && next.check_at > now
  if (!isSoonEnough) next.check_at = look
  const before = standingAt(monitor, now, windows).lateness
  const { state, lateness } = standingAt(next, now, windows)
  const changes = noticed.map(
    ({ type, since }): PulseChange =>
      type === 'late'
        ? {
            type,
            since,
            at: now,
            state: 'late',
            monitor,
            opensAt: opensAt(next, known.bound, windows),
          }
        : { type, since, at: now, state, monitor: next, opensAt: null },
  )
  const hasEnded = before !== null && before.since !== lateness?.since
  const spell = hasEnded ? { beganAt: before.since, cause: before.cause, endedAt: now } : null
  return { monitor: next, ping, spell, changes }
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
