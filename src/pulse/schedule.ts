/** When a monitor expects pings: by its interval, or by the times of a crontab line in a time zone, summer time included. */
import { Cron } from 'croner'
import { LRUCache } from 'lru-cache'
import { LENGTHS } from '../lib/monitor-bounds.ts'
import type { PulseSchedule } from './schema.ts'
import type { MonitorRow } from './store.ts'

/** Five fields and a time zone by its name in the IANA database, such as `0 3 * * 1-5` and `Europe/Berlin`. */
export type Timetable = { cron: string; timeZone: string }

/** Numbers, names of months and days, lists, ranges and steps: what every cron understands, and nothing more. */
const FIELD = /^[0-9A-Za-z*,/-]+$/
const NAMES = /[A-Za-z]+/g
const NAME = /^(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)$/i
const TIME_ZONE = /^[A-Za-z][A-Za-z0-9_+/-]*$/
/** A leap day comes within eight years. A date that never comes, such as 30 February, does not. */
const FARTHEST_RUN_MS = 9 * 366 * 24 * 60 * 60 * 1000

/** Making one takes longer than asking it. */
const known = new LRUCache<string, Cron>({ max: 1_000 })

/** Whether a timetable is well formed, its time zone exists, and it has a next run. */
export function isTimetable({ cron, timeZone }: Timetable, now: number): boolean {
  const fields = cron.split(' ')
  if (cron.length > LENGTHS.cron || fields.length !== 5) return false
  const isPlain = (field: string): boolean =>
    FIELD.test(field) && (field.match(NAMES) ?? []).every((name) => NAME.test(name))
  if (!fields.every(isPlain)) return false
  if (timeZone.length > LENGTHS.timeZone || !TIME_ZONE.test(timeZone)) return false
  try {
    const next = nextRun({ cron, timeZone }, now)
    return next !== null && next < now + FARTHEST_RUN_MS
  } catch {
    return false
  }
}

/**
 * The first run after a time, in unix milliseconds, or null if there is none. A run that summer time skips is made
 * up for when the skipped hour is over. In the hour that comes twice, a fixed time runs once.
 */
export function nextRun({ cron, timeZone }: Timetable, after: number): number | null {
  const name = `${timeZone} ${cron}`
  const job = known.get(name) ?? new Cron(cron, { timezone: timeZone, mode: '5-part' })
  known.set(name, job)
  return job.nextRun(new Date(after))?.getTime() ?? null
}

/** The shortest time between two of the next runs. */
export function shortestGapMs(timetable: Timetable, from: number): number {
  let shortest = Number.POSITIVE_INFINITY
  let last = nextRun(timetable, from)
  for (let runs = 0; runs < 50 && last !== null; runs++) {
    const next = nextRun(timetable, last)
    if (next !== null) shortest = Math.min(shortest, next - last)
    last = next
  }
  return shortest
}

/** When a monitor expects pings: by its interval, or by its schedule if there is one. */
export type Timing = {
  intervalSeconds: number
  graceSeconds: number
  /** Empty: there is none. */
  cron: string
  timeZone: string
}

export const scheduleOf = ({ schedule }: Pick<MonitorRow, 'schedule'>): PulseSchedule | null =>
  schedule === '' ? null : JSON.parse(schedule)

export function timingOf(monitor: MonitorRow): Timing {
  const schedule = scheduleOf(monitor)
  return {
    intervalSeconds: monitor.expected_interval_seconds,
    graceSeconds: schedule?.graceSeconds ?? monitor.grace_seconds,
    cron: schedule?.cron ?? '',
    timeZone: schedule?.timeZone ?? '',
  }
}

/** When a ping is expected, and how long the service waits for it. */
export type Expected = {
  nextExpectedAt: number
  graceMs: number
  /** When a job that has pinged in vain until this time pings again: an interval later, or at its next run. */
  expectedAfter(time: number): number
}

/** What is expected after a time. @param endsAt stands for the next run of a schedule that has none. */
export function expectedBy(timing: Timing, from: number, endsAt: number): Expected {
  const { intervalSeconds, graceSeconds, cron, timeZone } = timing
  const expectedAfter =
    cron === ''
      ? (time: number) => time + intervalSeconds * 1000
      : (time: number) => nextRun({ cron, timeZone }, time) ?? Math.max(endsAt, time)
  return { nextExpectedAt: expectedAfter(from), graceMs: graceSeconds * 1000, expectedAfter }
}
