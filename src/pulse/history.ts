/**
 * The history of a monitor for its owner, newest first: pings with their runs, late spells and blind windows, merged by
 * the time that each began, and the shares of time in which the monitor was not late.
 */

import type { ServiceClock } from '../db/clock.ts'
import type { Db } from '../db/db.ts'
import { rfc3339 } from '../lib/clock.ts'
import { apart } from '../lib/windows.ts'
import type { PulseHistory, PulseHistoryEntry } from './history-schema.ts'
import { standingAt, type Windows, windowsOf } from './state.ts'
import { createPulseStore, type LateSpell, type MonitorRow, type Ping } from './store.ts'
import type { EndedRun } from './transition.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const PERIODS = { last24Hours: DAY_MS, last7Days: 7 * DAY_MS, last30Days: 30 * DAY_MS }
/** Digits that a share has. Rounded down, so that only a monitor that was never late has 1. */
const DIGITS = 1e6
/** Spells that a share of time is made of. The pings of most plans cannot make more. */
export const MAX_SPELLS = 10_000

/** Where a page begins: with the ping of this number, and with spells and windows that began before these times. */
export type Place = { ping: number; spellsBefore: number; windowsBefore: number }

const PLACE = /^(\d{1,16})\.(\d{1,16})\.(\d{1,16})$/

/** A time in which the monitor was late, or the service blind. It lasts if `endedAt` is null. */
type Span = { beganAt: number; endedAt: number | null; cause: LateSpell['cause'] | null }

/**
 * At most so many entries from a place on, null for the newest. A cursor has a place in each of the three lists, which
 * later entries do not move.
 * @returns null if the monitor was destroyed meanwhile.
 */
export async function historyPage(
  { db, clock }: { db: Pick<Db, 'read'>; clock: Pick<ServiceClock, 'now' | 'windows'> },
  monitor: MonitorRow,
  { limit, place, type = null }: { limit: number; place: Place | null; type?: 'late' | null },
): Promise<PulseHistory | null> {
  const store = createPulseStore(db)
  const { public_id: publicId, created_at: createdAt } = monitor
  const now = clock.now()
  const unseen = windowsOf(monitor, clock.windows())
  const until = endOf(monitor, now)
  const open = openSpell(monitor, { now, until, windows: clock.windows() })
  const {
    ping = Number.MAX_SAFE_INTEGER,
    spellsBefore = Number.MAX_SAFE_INTEGER,
    windowsBefore = Number.MAX_SAFE_INTEGER,
  } = place ?? {}
  const newest = type === 'late' ? 0 : Math.min(ping, monitor.ping_count)
  // The spell that lasts may have ended since the monitor was read.
  const endedBefore = Math.min(spellsBefore, open?.beganAt ?? spellsBefore)
  const [pings, [first], ended, recent] = await Promise.all([
    store.pings(publicId, newest, limit),
    store.pings(publicId, 1, 1),
    store.spells(publicId, endedBefore, limit + 1),
    store.spellsSince(publicId, until - PERIODS.last30Days, MAX_SPELLS + 1),
  ])
  if (pings.length < Math.min(limit, newest)) return null
  const spells: Span[] = ended
  if (open && open.beganAt < spellsBefore) spells.unshift(open)
  const windows = (type === 'late' ? [] : unseen)
    .filter(({ beganAt, endedAt }) => endedAt > createdAt && beganAt < until)
    .filter(({ beganAt }) => beganAt < windowsBefore)
    .map((window): Span => ({ ...window, cause: null }))
    .reverse()
  const shown = merge({ pings, spells, windows }, limit)
  // What is learned later of a time before this page's end is not put between pages.
  const shownFrom = (shown.last ?? now) + 1
  const boundOf = (span: Span | undefined, before: number): number =>
    Math.min(span?.beganAt ?? before, shownFrom)
  const next: Place = {
    ping: newest - shown.pings,
    spellsBefore: boundOf(spells[shown.spells - 1], spellsBefore),
    windowsBefore: boundOf(windows[shown.windows - 1], windowsBefore),
  }
  const isLast =
    next.ping === 0 && shown.spells === spells.length && shown.windows === windows.length
  return {
    uptime: uptimeOf(first?.at ?? until, { until, open, spells: recent, windows: unseen }),
    entries: shown.entries,
    nextCursor: isLast ? null : cursorOf(next),
  }
}

/** The place that a cursor names, or null if the service has not made it. */
export function placeOf(cursor: string): Place | null {
  const text = Buffer.from(cursor, 'base64url').toString('latin1')
  const [, ping, spellsBefore, windowsBefore] = PLACE.exec(text) ?? []
  if (windowsBefore === undefined) return null
  const place = {
    ping: Number(ping),
    spellsBefore: Number(spellsBefore),
    windowsBefore: Number(windowsBefore),
  }
  return cursorOf(place) === cursor ? place : null
}

const cursorOf = ({ ping, spellsBefore, windowsBefore }: Place): string =>
  Buffer.from(`${ping}.${spellsBefore}.${windowsBefore}`, 'latin1').toString('base64url')

/** Until when a monitor expects pings: now, or its end. */
function endOf(monitor: MonitorRow, now: number): number {
  const isUsedUp = monitor.accepted_heartbeat_count >= monitor.heartbeat_limit
  const ended = Math.min(now, monitor.expires_at)
  return isUsedUp ? Math.min(ended, monitor.state_since) : ended
}

/** The spell that lasts, or did when the monitor ended. */
function openSpell(
  monitor: MonitorRow,
  { now, until, windows }: { now: number; until: number; windows: Windows },
): Span | null {
  const { lateness } = standingAt(monitor, until, windows)
  if (lateness === null || lateness.since > until) return null
  const { since: beganAt, cause } = lateness
  return { beganAt, endedAt: until < now ? until : null, cause }
}

/** The newest of all three, and how many of each. Of two at once, the time in which the other was comes first. */
function merge(
  { pings, spells, windows }: { pings: Ping[]; spells: Span[]; windows: Span[] },
  limit: number,
) {
  const count = { pings: 0, spells: 0, windows: 0 }
  const entries: PulseHistoryEntry[] = []
  let last: number | null = null
  while (entries.length < limit) {
    const ping = pings[count.pings]
    const spell = spells[count.spells]
    const window = windows[count.windows]
    const began = [spell?.beganAt, window?.beganAt, ping?.at].filter((time) => time !== undefined)
    if (began.length === 0) break
    last = Math.max(...began)
    if (spell?.beganAt === last) {
      count.spells++
      entries.push(spanEntry('late', spell))
    } else if (window?.beganAt === last) {
      count.windows++
      entries.push(spanEntry('blind', window))
    } else if (ping) {
      count.pings++
      entries.push(pingEntry(ping))
    }
  }
  return { entries, ...count, last }
}

const spanEntry = (
  type: 'late' | 'blind',
  { beganAt, endedAt, cause }: Span,
): PulseHistoryEntry => ({
  type,
  at: rfc3339(beganAt),
  endedAt: endedAt === null ? null : rfc3339(endedAt),
  cause,
  exitCode: null,
  run: null,
})

function pingEntry({ at, run: text }: Ping): PulseHistoryEntry {
  const run: EndedRun | null = text === null ? null : JSON.parse(text)
  return {
    type: run?.hasFailed ? 'failed' : 'ping',
    at: rfc3339(at),
    endedAt: null,
    cause: null,
    exitCode: run?.exitCode ?? null,
    run: run && {
      rid: run.rid,
      startedAt: run.startedAt === null ? null : rfc3339(run.startedAt),
      durationSeconds: durationSeconds(run),
    },
  }
}

export const durationSeconds = ({ startedAt, endedAt }: EndedRun): number | null =>
  startedAt === null ? null : Math.max(0, endedAt - startedAt) / 1000

/**
 * The shares of time in which the monitor was not late, blind windows left out. A period begins with the first ping at
 * the earliest. It is there only where it begins before the shorter one, so that no figure stands twice, and where its
 * spells were not too many to read.
 */
function uptimeOf(
  firstPingAt: number,
  {
    until,
    open,
    spells,
    windows,
  }: { until: number; open: Span | null; spells: LateSpell[]; windows: Windows },
): PulseHistory['uptime'] {
  const knownFrom = spells.length > MAX_SPELLS ? (spells.at(-1)?.beganAt ?? until) : 0
  const late = [...spells, ...(open ? [open] : [])].map(({ beganAt, endedAt }) => ({
    beganAt,
    endedAt: endedAt ?? until,
  }))
  const lateOrUnseen = apart([...windows, ...late])
  let shorterFrom = until
  const share = (ms: number): number | null => {
    const from = Math.max(until - ms, firstPingAt)
    if (from >= shorterFrom) return null
    shorterFrom = from
    const unseenMs = lengthWithin(windows, from, until)
    const seenMs = until - from - unseenMs
    if (from < knownFrom || seenMs <= 0) return null
    const lateMs = lengthWithin(lateOrUnseen, from, until) - unseenMs
    return Math.floor((1 - lateMs / seenMs) * DIGITS) / DIGITS
  }
  return {
    until: rfc3339(until),
    last24Hours: share(PERIODS.last24Hours),
    last7Days: share(PERIODS.last7Days),
    last30Days: share(PERIODS.last30Days),
  }
}

/** How much of the time between two moments these windows take, which are apart from each other. */
const lengthWithin = (windows: Windows, from: number, until: number): number =>
  windows.reduce(
    (sum, { beganAt, endedAt }) =>
      sum + Math.max(0, Math.min(endedAt, until) - Math.max(beganAt, from)),
    0,
  )
