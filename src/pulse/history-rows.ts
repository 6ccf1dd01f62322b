/** What a turn adds to the history of a monitor, as pure functions of the monitor before and after it. */
import { TIME_DIGITS, timeText } from '../lib/time-list.ts'
import { CHUNK_PINGS, type LateSpell } from './history-store.ts'
import { type Lateness, latenessAt, type Windows } from './state.ts'
import type { MonitorRow } from './store.ts'

/** How many times a monitor has stored, those in chunks included. The newest has this number. */
export const timedCount = ({
  accepted_heartbeat_count: accepted,
  untimed_heartbeat_count: untimed,
}: Pick<MonitorRow, 'accepted_heartbeat_count' | 'untimed_heartbeat_count'>): number =>
  accepted - untimed

/** How many of the times in a monitor's row are in no chunk. They are the newest. */
export const looseCount = (
  monitor: Pick<MonitorRow, 'accepted_heartbeat_count' | 'untimed_heartbeat_count' | 'chunk_count'>,
): number => timedCount(monitor) - monitor.chunk_count * CHUNK_PINGS

/** The oldest hundred of the loose times, if the monitor's row cannot hold all of them with these, which are newer. */
export function chunkBefore(
  monitor: MonitorRow,
  times: readonly number[],
): { position: number; times: string } | null {
  const loose = looseCount(monitor)
  if (loose + times.length <= CHUNK_PINGS) return null
  const newer = times.map(timeText).reverse().join('')
  const all = newer + monitor.recent_heartbeats.slice(0, loose * TIME_DIGITS)
  return { position: monitor.chunk_count, times: all.slice(-CHUNK_PINGS * TIME_DIGITS) }
}

/** The spells that begin or end between two facts of a monitor, and how long all that have ended lasted. */
export function spellsBetween(
  monitor: MonitorRow,
  next: MonitorRow,
  { at, by, windows }: { at: number; by: LateSpell['endedBy']; windows: Windows },
): { spells: LateSpell[]; lateMs: number } {
  const before = latenessAt(monitor, at, windows)
  const after = latenessAt(next, at, windows)
  const spells: LateSpell[] = []
  let lateMs = monitor.late_ms
  const hasChanged = before?.since !== after?.since
  if (before && hasChanged) {
    const endedAt = Math.max(at, before.since)
    spells.push({
      ...{ beganAt: before.since, cause: before.cause, endedAt, endedBy: by },
      lateBeforeMs: lateMs,
    })
    lateMs += endedAt - before.since
  }
  if (after && isStored(after, next) && (hasChanged || !isStored(after, monitor))) {
    spells.push({
      ...{ beganAt: after.since, cause: after.cause, endedAt: null, endedBy: null },
      lateBeforeMs: lateMs,
    })
  }
  return { spells, lateMs }
}

/** A deadline that has passed makes a monitor late before the store says so. */
const isStored = ({ cause }: Lateness, monitor: MonitorRow): boolean =>
  (cause === 'failure' ? monitor.failed_at : monitor.late_since) !== null
