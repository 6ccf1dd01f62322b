/**
 * What time makes of a monitor, as pure functions of its facts: its state, its deadlines, and the step that it takes when
 * nothing but time has passed. `transition.ts` has the steps of events. Times are unix milliseconds.
 */
import { apart, type BlindWindow } from '../lib/windows.ts'
import { type Expected, expectedBy, type Timing, timingOf } from './schedule.ts'
import type { PulseState } from './schema.ts'
import type { LateSpell, MonitorRow, Ping } from './store.ts'
import { suspensionsOf } from './takedown.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** When nobody could reach the service: apart from each other, in the order of time. */
export type Windows = readonly BlindWindow[]

/** What waits for the silence of a monitor: the timings that it had when each secret was bound. */
export type Bound = { timings: readonly Timing[]; waitMs: number }

/** The deadlines are null if no ping is expected. */
export type Standing = {
  state: PulseState
  stateChangedAt: number
  nextExpectedAt: number | null
  lateAt: number | null
  /** The deadline that has passed without a ping, or null. A failed run is late without it. */
  lateSince: number | null
}

/** Precedence: expired, then exhausted, then waiting, operational or late. */
export function standingAt(monitor: MonitorRow, now: number, windows: Windows): Standing {
  const none = { nextExpectedAt: null, lateAt: null, lateSince: monitor.late_since }
  const { expires_at: expiresAt, state_since: stateSince } = monitor
  if (expiresAt <= now) return { state: 'expired', stateChangedAt: expiresAt, ...none }
  if (isUsedUp(monitor)) return { state: 'exhausted', stateChangedAt: stateSince, ...none }
  const deadline = deadlineAt(monitor, now, windows)
  if (deadline === null) return { state: 'waiting', stateChangedAt: stateSince, ...none }
  const lateness = latenessOf(monitor, deadline.lateSince)
  return lateness === null
    ? { state: 'operational', stateChangedAt: stateSince, ...deadline }
    : { state: 'late', stateChangedAt: lateness.since, ...deadline }
}

/** Since when a monitor is late, and why: it misses a ping, or its last run failed. */
export type Lateness = { since: number; cause: 'silence' | 'failure' }

/** The lateness of a monitor at a time, whether or not it accepts pings any more. */
export function latenessAt(monitor: MonitorRow, now: number, windows: Windows): Lateness | null {
  const deadline = deadlineAt(monitor, now, windows)
  return deadline && latenessOf(monitor, deadline.lateSince)
}

function latenessOf(
  { failed_at: failedAt }: MonitorRow,
  lateSince: number | null,
): Lateness | null {
  if (failedAt !== null && failedAt <= (lateSince ?? failedAt)) {
    return { since: failedAt, cause: 'failure' }
  }
  return lateSince === null ? null : { since: lateSince, cause: 'silence' }
}

/** The deadline of a monitor, and whether it has passed. Null before the first ping. */
function deadlineAt(
  monitor: MonitorRow,
  now: number,
  windows: Windows,
): Pick<Standing, 'nextExpectedAt' | 'lateAt' | 'lateSince'> | null {
  const { last_ping_at: lastPingAt, late_since: stored } = monitor
  if (lastPingAt === null) return null
  const from = Math.max(lastPingAt, monitor.rescheduled_at)
  const expected = expectedBy(timingOf(monitor), from, monitor.expires_at)
  // A lateness that is stored stays, even if the service learns of a blind window afterwards.
  const lateAt = stored ?? fairDeadline(expected, windowsOf(monitor, windows))
  const isLate = stored !== null || now >= lateAt
  return {
    nextExpectedAt: expected.nextExpectedAt,
    lateAt,
    lateSince: isLate ? lateAt : null,
  }
}

/** The lateness that begins without being stored yet. One that is due at the end of the monitor begins no more. */
export function newLateness(monitor: MonitorRow, now: number, windows: Windows): number | null {
  if (monitor.late_since !== null || isUsedUp(monitor)) return null
  const lateSince = deadlineAt(monitor, now, windows)?.lateSince ?? null
  return lateSince !== null && lateSince < monitor.expires_at ? lateSince : null
}

const isUsedUp = (monitor: MonitorRow): boolean =>
  monitor.accepted_heartbeat_count >= monitor.heartbeat_limit

/** Whether it accepts pings, and so can be extended: it has not expired, has pings left and is not suspended. */
export const isActive = (monitor: MonitorRow, now: number): boolean =>
  monitor.expires_at > now && monitor.suspended_at === null && !isUsedUp(monitor)

/** When time alone changes the state next, or null if it never does. */
export function nextStateChangeAt(
  monitor: MonitorRow,
  now: number,
  windows: Windows,
): number | null {
  const { state, lateAt } = standingAt(monitor, now, windows)
  if (state === 'expired') return null
  return state === 'operational' && lateAt !== null && lateAt > now
    ? Math.min(lateAt, monitor.expires_at)
    : monitor.expires_at
}

/** When the owner is told that the monitor ends soon: a day before, or a tenth of a short life. */
export const expiringAt = ({
  created_at: createdAt,
  expires_at: expiresAt,
}: Pick<MonitorRow, 'created_at' | 'expires_at'>): number =>
  expiresAt - Math.min(DAY_MS, Math.floor((expiresAt - createdAt) / 10))

/** Whether a lateness is stored that may still become a silence. */
export const isFallingSilent = (monitor: MonitorRow): boolean =>
  monitor.late_since !== null && monitor.is_silent === 0

/**
 * When the silence of a late monitor opens what waits for it: the longest wait of the timings that the monitor has
 * and had when secrets were bound, so that a shorter interval opens nothing earlier. Null if nothing waits.
 */
export function opensAt(monitor: MonitorRow, bound: Bound, windows: Windows): number | null {
  const { late_since: lateSince, expires_at: endsAt } = monitor
  if (lateSince === null || !isFallingSilent(monitor) || bound.timings.length === 0) return null
  const from = Math.max(monitor.last_ping_at ?? 0, monitor.rescheduled_at)
  const unseen = windowsOf(monitor, windows)
  const times = [timingOf(monitor), ...bound.timings].map((timing) => {
    const expected = expectedBy(timing, from, endsAt)
    const lateAt = Math.max(fairDeadline(expected, unseen), lateSince)
    return openingTime(expected, { lateAt, waitMs: bound.waitMs }, unseen)
  })
  return Math.max(...times)
}

/** The times in which this monitor could not be pinged, whatever the reason, apart from each other. */
export function windowsOf(monitor: Pick<MonitorRow, 'suspensions'>, windows: Windows): Windows {
  return monitor.suspensions === '' ? windows : apart([...windows, ...suspensionsOf(monitor)])
}

/** When to look at a monitor next because time alone may have changed it, or null. */
export function nextLookAt(
  monitor: MonitorRow,
  now: number,
  { windows, bound }: { windows: Windows; bound: Bound },
): number | null {
  const opening = opensAt(monitor, bound, windows)
  const { state, lateAt } = standingAt(monitor, now, windows)
  if (state === 'exhausted') return null
  if (state === 'expired') return newLateness(monitor, now, windows) ?? opening
  const looks = [
    monitor.is_expiry_told === 1 ? null : expiringAt(monitor),
    monitor.late_since === null ? lateAt : opening,
  ].filter((time) => time !== null)
  return looks.length === 0 ? null : Math.min(...looks)
}

/**
 * When a missing ping is late. A blind window that overlaps the time from `nextExpectedAt` less the grace to
 * the deadline moves the deadline to one interval and grace after the window's end, because a job may have pinged
 * in vain, and pings again only after its interval. Other windows move nothing.
 */
export function fairDeadline(
  { nextExpectedAt, graceMs, expectedAfter }: Expected,
  windows: Windows,
): number {
  let lateAt = nextExpectedAt + graceMs
  for (const { beganAt, endedAt } of windows) {
    if (endedAt < nextExpectedAt - graceMs) continue
    if (beganAt > lateAt) break
    lateAt = Math.max(lateAt, expectedAfter(endedAt) + graceMs)
  }
  return lateAt
}

/**
 * When a lateness opens what waits for it: after the grace or the service's wait, whichever is longer. A window that
 * overlaps that time moves it to as long after the first time that a ping is expected after the window.
 */
function openingTime(
  { graceMs, expectedAfter }: Expected,
  { lateAt, waitMs }: { lateAt: number; waitMs: number },
  windows: Windows,
): number {
  const wait = Math.max(graceMs, waitMs)
  let opening = lateAt + wait
  for (const { beganAt, endedAt } of windows) {
    if (endedAt <= lateAt) continue
    if (beganAt > opening) break
    opening = Math.max(opening, expectedAfter(endedAt) + wait)
  }
  return opening
}

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

/** Times are unix milliseconds. */
export type PulseChange = {
  type: ChangeType
  publicId: string
  /** When it was noticed. */
  at: number
  /** Since when it is so: the deadline of `late` and `silent`, otherwise `at`. */
  since: number
  /** The state after the change, as the owner sees it. */
  state: PulseState
  /** The monitor as it was before the change. */
  monitor: MonitorRow
  /** The last ping after the change. */
  lastPingAt: number | null
  /** How many pings there have been after the change, failed runs included and starts not. */
  pingCount: number
  /** The code of a failed run, or null where none was given. */
  exitCode: number | null
  /** When a lateness that begins will open what waits for it, if no ping comes; null if nothing waits. */
  opensAt: number | null
}

export type Step = {
  /** The whole row, with the facts that have changed. */
  monitor: MonitorRow
  ping: Ping | null
  spells: LateSpell[]
  changes: PulseChange[]
}

export type Noticed = Pick<PulseChange, 'type' | 'since'>

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
export function onward(monitor: MonitorRow, known: Known): Known {
  const { last_ping_at, late_since, failed_at, rescheduled_at } = monitor
  const latest = Math.max(last_ping_at ?? 0, late_since ?? 0, failed_at ?? 0, rescheduled_at)
  return latest <= known.now ? known : { ...known, now: latest }
}

/** From a monitor to its next facts: when to look at it again, the spells and the changes. */
export function step(
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
  const { state } = standingAt(next, now, windows)
  const changes = noticed.map(
    ({ type, since }): PulseChange => ({
      type,
      publicId: monitor.public_id,
      at: now,
      since,
      // Noticed together with what ended it.
      state: type === 'late' ? 'late' : state,
      monitor,
      lastPingAt: type === 'late' ? monitor.last_ping_at : next.last_ping_at,
      pingCount: next.ping_count,
      exitCode: type === 'failed' ? next.exit_code : null,
      opensAt: type === 'late' ? opensAt(next, known.bound, windows) : null,
    }),
  )
  return { monitor: next, ping, spells: spellsBetween(monitor, next, known), changes }
}

/** The spell that ends between two facts of a monitor, if one does. */
function spellsBetween(
  monitor: MonitorRow,
  next: MonitorRow,
  { now, windows }: Known,
): LateSpell[] {
  const before = latenessAt(monitor, now, windows)
  if (before === null || before.since === latenessAt(next, now, windows)?.since) return []
  return [{ beganAt: before.since, cause: before.cause, endedAt: now }]
}
