/**
 * For how much of a time a monitor was not late. Each spell knows how long those before it lasted, so a share of
 * time takes a few looks into the store, however many spells there were.
 */
import { rfc3339 } from '../lib/clock.ts'
import type { BlindWindow } from '../lib/windows.ts'
import type { PulseHistory } from './history-schema.ts'
import type { MonitorRow } from './store.ts'

const HOUR_MS = 60 * 60 * 1000
const PERIODS = {
  last24Hours: 24 * HOUR_MS,
  last7Days: 7 * 24 * HOUR_MS,
  last30Days: 30 * 24 * HOUR_MS,
}
/** Digits that are told. Rounded down, so that only what was never late is 1. */
const DIGITS = 1e6

export type Uptime = PulseHistory['uptime']

/** What the figures depend on. Times are unix milliseconds. */
export type Measured = {
  monitor: Pick<MonitorRow, 'armed_at' | 'late_ms'>
  /** Until when: now, or when the monitor stopped to expect pings. */
  until: number
  /** Since when it is late, or null. */
  lateSince: number | null
  /** Apart from each other, in the order of time. */
  windows: readonly BlindWindow[]
  /** How long the monitor had been late until each of these times, in spells that have ended since. */
  lateUntil(times: readonly number[]): Promise<Map<number, number>>
}

/**
 * A period begins with the first ping at the earliest. It is told only where it begins before the shorter one, so
 * that no figure stands twice.
 */
export async function uptimeOf(measured: Measured): Promise<Uptime> {
  const { monitor, until } = measured
  const uptime: Uptime = {
    until: rfc3339(until),
    last24Hours: null,
    last7Days: null,
    last30Days: null,
  }
  const { armed_at: armedAt } = monitor
  if (armedAt === null || armedAt >= until) return uptime
  const windows = measured.windows
    .map(({ beganAt, endedAt }) => ({ beganAt, endedAt: Math.min(endedAt, until) }))
    .filter(({ beganAt, endedAt }) => endedAt > armedAt && beganAt < endedAt)
  const lateMs = await lateness(measured, armedAt, windows)
  let shorterFrom = until
  for (const [name, ms] of Object.entries(PERIODS) as [keyof typeof PERIODS, number][]) {
    const from = Math.max(until - ms, armedAt)
    if (from < shorterFrom) uptime[name] = shareOf({ from, until, windows, lateMs })
    shorterFrom = from
  }
  return uptime
}

type LateMs = (time: number) => number

/** Returns how long the monitor had been late until a time, which is one that `shareOf` asks for. */
async function lateness(
  { monitor, until, lateSince, lateUntil }: Measured,
  armedAt: number,
  windows: readonly BlindWindow[],
): Promise<LateMs> {
  const starts = Object.values(PERIODS).map((ms) => Math.max(until - ms, armedAt))
  const earliest = Math.min(...starts)
  const edges = windows
    .filter(({ endedAt }) => endedAt > earliest)
    .flatMap(({ beganAt, endedAt }) => [Math.max(beganAt, earliest), endedAt])
  // Since the spell that lasts began, none has ended.
  const openSince = lateSince ?? until
  const past = [...new Set([...starts, ...edges])].filter((time) => time < openSince)
  const ended = await lateUntil(past)
  return (time) => ended.get(time) ?? monitor.late_ms + Math.max(0, time - openSince)
}

function shareOf({
  from,
  until,
  windows,
  lateMs,
}: {
  from: number
  until: number
  windows: readonly BlindWindow[]
  lateMs: LateMs
}): number | null {
  let seen = until - from
  let late = lateMs(until) - lateMs(from)
  for (const { beganAt, endedAt } of windows) {
    if (endedAt <= from) continue
    const began = Math.max(beganAt, from)
    seen -= endedAt - began
    late -= lateMs(endedAt) - lateMs(began)
  }
  if (seen <= 0) return null
  // A clock that went back may have left spells that overlap.
  return Math.floor(Math.min(Math.max(1 - late / seen, 0), 1) * DIGITS) / DIGITS
}
