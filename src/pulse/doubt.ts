/**
 * Whether pings reach the service, judged by those that do: a network that broke in front of it looks, from inside, as
 * if all jobs had died at once. Pure functions of what was counted.
 */
import type { BlindWindow } from './fairness.ts'

/** The pings of this time are compared with those that were due in it. */
export const SPAN_MS = 2 * 60_000
/** Fewer missing pings than this may be chance. */
const MIN_DUE = 20
/** Doubt begins when fewer than one in so many of the pings that were due have arrived. */
const ONE_IN = 10
/** While nothing at all arrives, deadlines wait for so long. Then alerts go out, marked: all jobs may be dead. */
const MAX_WAIT_MS = 15 * 60_000
/** While nothing at all arrives, the service doubts itself for so long. */
const MAX_DOUBT_MS = 24 * 60 * 60_000
/** Every instance has told of its pings within this time. */
const COUNTED_MS = 10_000
/** A doubt that begins again so soon goes on with the same window. */
const SAME_DOUBT_MS = 30_000

/**
 * A ping that has not come. It counts as due at half of its grace: a job that takes longer than usual is nothing to
 * wonder at, and before its deadline there is time to notice that all are missing.
 */
export type MissedPing = { expectedAt: number; dueAt: number }

export type Seen = {
  now: number
  /** How many pings arrived within `SPAN_MS`, on any instance. */
  arrivedCount: number
  /** The last time that one arrived, or 0. */
  arrivedAt: number
  missed: readonly MissedPing[]
  /** The blind windows that arrivals have made, and the others, by their ends. */
  windows: readonly (BlindWindow & { isOfArrivals: boolean })[]
}

export type Verdict = {
  /** The blind window that goes on until now, or null. */
  window: BlindWindow | null
  /** No deadline passes until the two minutes say more. */
  isHeld: boolean
  isDoubtful: boolean
  dueCount: number
}

/**
 * What bounds a buyer who wants the service in doubt: a monitor counts only after a ping, and its missing ping for two
 * minutes, once, whatever windows do to its deadline. So monitors that never ping, or died long ago, count for nothing,
 * and to begin a doubt again each of them has to pay for a ping that arrives. They must be nine of ten of all pings
 * that are due. One ping of anybody ends what lasts longer than those two minutes, and deadlines wait at most
 * `MAX_WAIT_MS` for it.
 */
export function judge({ now, arrivedCount, arrivedAt, missed, windows }: Seen): Verdict {
  // What was due in a window of another cause tells nothing new.
  const others = windows.filter(({ isOfArrivals }) => !isOfArrivals)
  const since = Math.max(now - SPAN_MS, ...others.map(({ endedAt }) => endedAt))
  const missing = missed.filter(({ dueAt }) => dueAt > since && dueAt <= now)
  const dueCount = arrivedCount + missing.length
  const areMissing = dueCount >= MIN_DUE && arrivedCount * ONE_IN < dueCount
  const last = windows.findLast(({ isOfArrivals }) => isOfArrivals)
  const lasts = last === undefined ? 0 : now - last.beganAt
  const isSilent =
    last !== undefined && arrivedAt <= last.endedAt - COUNTED_MS && lasts < MAX_DOUBT_MS
  const goesOn =
    last !== undefined &&
    ((isSilent && lasts <= MAX_WAIT_MS) || (areMissing && now - last.endedAt <= SAME_DOUBT_MS))
  const beganAt = goesOn ? last.beganAt : areMissing ? since : null
  const sinceArrival = missed.filter(
    ({ expectedAt }) => expectedAt > Math.max(arrivedAt, since) && expectedAt <= now,
  )
  // Before the two minutes are over, deadlines of a minute's grace pass. Nothing at all has come, so they wait for that.
  const isHeld = beganAt === null && sinceArrival.length >= MIN_DUE && arrivedAt > now - SPAN_MS
  return {
    window: beganAt === null ? null : { beganAt, endedAt: now },
    isHeld,
    isDoubtful: areMissing || isSilent || isHeld,
    dueCount,
  }
}
