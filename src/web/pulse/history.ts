/** What the stored pings of a monitor tell: when it was late, and for how much of the time it was not. */
import type { PulseStatus } from '../../client/index.ts'

/** A time during which the monitor was late, in unix milliseconds. It lasts if `to` is null. */
export type Spell = { from: number; to: number | null }

export type History = {
  /** Oldest first, in unix milliseconds. The first one is where the history begins. */
  pings: number[]
  /** Where it ends: now, or when the monitor stopped to expect pings. */
  until: number
  /** Oldest first, by the present settings: those of the past are not stored. */
  spells: Spell[]
  /** The part of the time that it was on time, from 0 to 1. Null with a schedule, whose past is not told. */
  onTime: number | null
}

type Told = Pick<
  PulseStatus,
  | 'recentHeartbeats'
  | 'expectedIntervalSeconds'
  | 'graceSeconds'
  | 'expiresAt'
  | 'remainingHeartbeats'
  | 'blindWindows'
  | 'schedule'
  | 'state'
  | 'stateChangedAt'
>

/** @returns null before the first ping. */
export function historyOf(status: Told, now: number): History | null {
  const pings = status.recentHeartbeats.map((time) => Date.parse(time)).reverse()
  const [first, last] = [pings[0], pings.at(-1)]
  if (first === undefined || last === undefined) return null
  const isExhausted = status.remainingHeartbeats === 0
  const hasEnded = isExhausted || now >= Date.parse(status.expiresAt)
  const until = isExhausted ? last : Math.max(last, Math.min(now, Date.parse(status.expiresAt)))
  if (status.schedule !== null) {
    const isLate = status.state === 'late'
    const spells = isLate ? [{ from: Date.parse(status.stateChangedAt), to: null }] : []
    return { pings, until, spells, onTime: null }
  }
  const deadlineAfter = deadlines(status)
  const spells = pings.flatMap((time, index): Spell[] => {
    const next = pings[index + 1]
    const from = deadlineAfter(time)
    if (from > (next ?? until) || (next === undefined && isExhausted)) return []
    return [{ from, to: next ?? (hasEnded ? until : null) }]
  })
  const late = spells.reduce((sum, { from, to }) => sum + (to ?? until) - from, 0)
  const span = until - first
  return { pings, until, spells, onTime: span > 0 ? 1 - late / span : 1 }
}

/**
 * When a monitor is late after a ping. As in the service, a time in which nobody could ping moves the deadline:
 * the job has an interval and a grace from its end.
 */
function deadlines({
  expectedIntervalSeconds,
  graceSeconds,
  blindWindows,
}: Told): (ping: number) => number {
  const [interval, grace] = [expectedIntervalSeconds * 1000, graceSeconds * 1000]
  const windows = blindWindows
    .map(({ beganAt, endedAt }) => ({ began: Date.parse(beganAt), ended: Date.parse(endedAt) }))
    .sort((a, b) => a.began - b.began)
  return (ping) => {
    let deadline = ping + interval + grace
    for (const { began, ended } of windows) {
      const matters = ended >= ping + interval - grace && began <= deadline
      if (matters) deadline = Math.max(deadline, ended + interval + grace)
    }
    return deadline
  }
}
