/**
 * Pages of a monitor's history, newest first: pings with their runs, late spells and blind windows, merged by the
 * time that each began. A cursor has a place in each of the three, which what comes later does not move.
 */
import type { Db } from '../db/db.ts'
import { rfc3339, type ServiceClock } from '../lib/clock.ts'
import { timesIn } from '../lib/time-list.ts'
import type { BlindWindow } from '../lib/windows.ts'
import { looseCount, timedCount } from './history-rows.ts'
import type { PulseHistory, PulseHistoryEntry } from './history-schema.ts'
import { CHUNK_PINGS, createHistoryStore, type RunRow } from './history-store.ts'
import { type Lateness, latenessAt, type Windows, windowsOf } from './state.ts'
import type { MonitorRow } from './store.ts'
import { uptimeOf } from './uptime.ts'

/** Where a page begins: with the ping of this number, and with spells and windows that began before these times. */
export type Place = { ping: number; spellsBefore: number; windowsBefore: number }

export type HistoryReader = {
  /**
   * At most so many entries from a place on, null for the newest.
   * @returns null if the monitor was destroyed meanwhile.
   */
  page(
    monitor: MonitorRow,
    asked: { limit: number; place: Place | null; type?: 'late' | null },
  ): Promise<PulseHistory | null>
}

/** A time in which the monitor was late, or the service blind. It lasts if `endedAt` is null. */
type Span = { beganAt: number; endedAt: number | null; cause: Lateness['cause'] | null }
type Ping = { number: number; at: number; run: RunRow | null }

const PLACE = /^(\d{1,16})\.(\d{1,16})\.(\d{1,16})$/

export function createHistoryReader({
  db,
  clock,
}: {
  db: Pick<Db, 'read'>
  clock: Pick<ServiceClock, 'now' | 'windows'>
}): HistoryReader {
  const store = createHistoryStore(db)

  /** The newest of these pings first. Null if the store has not all of them any more. */
  async function pings(
    monitor: MonitorRow,
    { from, to }: { from: number; to: number },
  ): Promise<Ping[] | null> {
    if (to < from) return []
    const { public_id: publicId, recent_heartbeats: recent } = monitor
    const chunkOf = (number: number): number => Math.floor((number - 1) / CHUNK_PINGS)
    const [chunks, runs] = await Promise.all([
      chunkOf(from) < monitor.chunk_count
        ? store.chunks(publicId, { from: chunkOf(from), to: chunkOf(to) })
        : [],
      store.runs(publicId, { from, to }),
    ])
    const times = new Map(chunks.map((chunk) => [Number(chunk.position), timesIn(chunk.times)]))
    times.set(monitor.chunk_count, timesIn(recent).slice(0, looseCount(monitor)))
    const runOf = new Map(runs.map((run) => [Number(run.ping_number), run]))
    const found: Ping[] = []
    for (let number = to; number >= from; number--) {
      const chunk = times.get(chunkOf(number))
      const at = chunk?.[chunk.length - 1 - ((number - 1) % CHUNK_PINGS)]
      if (at === undefined) return null
      found.push({ number, at, run: runOf.get(number) ?? null })
    }
    return found
  }

  return {
    async page(monitor, { limit, place, type = null }) {
      const { public_id: publicId, created_at: createdAt } = monitor
      const now = clock.now()
      const seen = clock.windows()
      const unseen = windowsOf(monitor, seen)
      const until = endOf(monitor, now)
      const open = openSpell(monitor, { now, until, windows: seen })
      const {
        ping = Number.POSITIVE_INFINITY,
        spellsBefore = Number.MAX_SAFE_INTEGER,
        windowsBefore = Number.MAX_SAFE_INTEGER,
      } = place ?? {}
      const newest = type === 'late' ? 0 : Math.min(ping, timedCount(monitor))
      const [readPings, ended, uptime] = await Promise.all([
        pings(monitor, { from: Math.max(1, newest - limit + 1), to: newest }),
        store.spells(publicId, {
          // The spell that lasts may have ended since the monitor was read.
          before: Math.min(spellsBefore, open?.beganAt ?? spellsBefore),
          most: limit + 1,
        }),
        uptimeOf({
          ...{ monitor, until, windows: unseen },
          lateSince: open?.beganAt ?? null,
          lateUntil: (times) => store.lateUntil(publicId, times),
        }),
      ])
      if (readPings === null) return null
      const spells: Span[] = ended.map(({ began_at, ended_at, cause }) => ({
        ...{ beganAt: Number(began_at), endedAt: Number(ended_at), cause },
      }))
      if (open && open.beganAt < spellsBefore) spells.unshift(open)
      const windows = (type === 'late' ? [] : unseen)
        .filter(({ beganAt, endedAt }) => endedAt > createdAt && beganAt < until)
        .filter(({ beganAt }) => beganAt < windowsBefore)
        .map((window: BlindWindow): Span => ({ ...window, cause: null }))
        .reverse()
      const shown = merge({ pings: readPings, spells, windows }, limit)
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
        uptime,
        entries: shown.entries.map((entry) => told(entry, now)),
        nextCursor: isLast ? null : cursorOf(next),
      }
    },
  }
}

/** The place that a cursor names, or null if the service has not made it. */
export function placeOf(cursor: string): Place | null {
  const text = Buffer.from(cursor, 'base64url').toString('latin1')
  const [, ping, spellsBefore, windowsBefore] = PLACE.exec(text) ?? []
  if (windowsBefore === undefined) return null
  const place = {
    ...{ ping: Number(ping), spellsBefore: Number(spellsBefore) },
    windowsBefore: Number(windowsBefore),
  }
  return cursorOf(place) === cursor ? place : null
}

const cursorOf = ({ ping, spellsBefore, windowsBefore }: Place): string =>
  Buffer.from(`${ping}.${spellsBefore}.${windowsBefore}`, 'latin1').toString('base64url')

/** Until when a monitor expects pings: now, or its end. */
function endOf(monitor: MonitorRow, now: number): number {
  const { accepted_heartbeat_count: accepted, heartbeat_limit: limit } = monitor
  const ended = Math.min(now, monitor.expires_at)
  return accepted >= limit ? Math.min(ended, monitor.state_since) : ended
}

/** The spell that lasts, or did when the monitor ended. */
function openSpell(
  monitor: MonitorRow,
  { now, until, windows }: { now: number; until: number; windows: Windows },
): Span | null {
  const lateness = latenessAt(monitor, until, windows)
  if (lateness === null || lateness.since > until) return null
  return {
    beganAt: lateness.since,
    endedAt: until < now ? until : null,
    cause: lateness.cause,
  }
}

type Shown = { type: 'late' | 'blind'; span: Span } | { type: 'ping'; ping: Ping }

/** The newest of all three, and how many of each. Of two at once, the time in which the other was comes first. */
function merge(
  { pings, spells, windows }: { pings: Ping[]; spells: Span[]; windows: Span[] },
  limit: number,
): { entries: Shown[]; pings: number; spells: number; windows: number; last: number | null } {
  const count = { pings: 0, spells: 0, windows: 0 }
  const entries: Shown[] = []
  let last: number | null = null
  while (entries.length < limit) {
    const ping = pings[count.pings]
    const spell = spells[count.spells]
    const window = windows[count.windows]
    const began = (span: Span | undefined): number => span?.beganAt ?? Number.NEGATIVE_INFINITY
    const newest = Math.max(began(spell), began(window), ping?.at ?? Number.NEGATIVE_INFINITY)
    if (spell && spell.beganAt === newest) {
      count.spells++
      entries.push({ type: 'late', span: spell })
    } else if (window && window.beganAt === newest) {
      count.windows++
      entries.push({ type: 'blind', span: window })
    } else if (ping) {
      count.pings++
      entries.push({ type: 'ping', ping })
    } else break
    last = newest
  }
  return { entries, ...count, last }
}

function told(shown: Shown, now: number): PulseHistoryEntry {
  // A clock that went back has left times of the future in the rows of pings.
  const time = (unixMs: number): string => rfc3339(Math.min(unixMs, now))
  const timeOrNull = (unixMs: number | null): string | null =>
    unixMs === null ? null : time(unixMs)
  if (shown.type !== 'ping') {
    const { beganAt, endedAt, cause } = shown.span
    return {
      ...{ type: shown.type, at: time(beganAt), endedAt: timeOrNull(endedAt), cause },
      ...{ exitCode: null, run: null },
    }
  }
  const { at, run } = shown.ping
  return {
    type: run?.has_failed ? 'failed' : 'ping',
    ...{ at: time(at), endedAt: null, cause: null, exitCode: run?.exit_code ?? null },
    run: run && {
      rid: run.rid,
      startedAt: timeOrNull(run.started_at),
      durationSeconds: run.started_at === null ? null : Math.max(0, at - run.started_at) / 1000,
    },
  }
}
