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
  /** The part of the time that it was on time, from 0 to 1. */
  onTime: number
}

type Told = Pick<
  PulseStatus,
  | 'recentHeartbeats'
  | 'expectedIntervalSeconds'
  | 'graceSeconds'
  | 'expiresAt'
  | 'remainingHeartbeats'
>

/** @returns null before the first ping. */
export function historyOf(status: Told, now: number): History | null {
  const pings = status.recentHeartbeats.map((time) => Date.parse(time)).reverse()
  const [first, last] = [pings[0], pings.at(-1)]
  if (first === undefined || last === undefined) return null
  const isExhausted = status.remainingHeartbeats === 0
  const hasEnded = isExhausted || now >= Date.parse(status.expiresAt)
  const until = isExhausted ? last : Math.max(last, Math.min(now, Date.parse(status.expiresAt)))
  const allowed = (status.expectedIntervalSeconds + status.graceSeconds) * 1000
  const spells = pings.flatMap((time, index): Spell[] => {
    const next = pings[index + 1]
    const from = time + allowed
    if (from > (next ?? until) || (next === undefined && isExhausted)) return []
    return [{ from, to: next ?? (hasEnded ? until : null) }]
  })
  const late = spells.reduce((sum, { from, to }) => sum + (to ?? until) - from, 0)
  const span = until - first
  return { pings, until, spells, onTime: span > 0 ? 1 - late / span : 1 }
}
