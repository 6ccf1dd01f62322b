/** Times as an operator writes them on the command line. */
import { misuse } from '../exit.ts'

const UNITS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 }
const DAY_MS = 86_400_000

/**
 * A date (its first moment, UTC), a time with its offset, or how long ago: `90m`, `24h`, `7d`. Unix milliseconds.
 * @throws CliError that names the option.
 */
export function timeFrom(text: string, option: string, now: number): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  const time = count === '' ? moment(text) : now - Number(count) * (UNITS[unit] ?? 0)
  if (time !== null) return time
  throw misuse(
    `${option} must be a date such as 2026-01-31, a time such as 2026-01-31T18:00:00Z, or how long ago, such as 24h or 7d.`,
  )
}

/** The same for the end of a time: a date means its last moment, so that the day belongs to it. */
export function timeTo(text: string, option: string, now: number): number {
  const time = timeFrom(text, option, now)
  return isDate(text) ? time + DAY_MS : time
}

const isDate = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text)

function moment(text: string): number | null {
  const hasOffset = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(text)
  if (!isDate(text) && !hasOffset) return null
  const time = Date.parse(text)
  // JavaScript takes February 30 for March 2.
  const isReal =
    !Number.isNaN(time) && (!isDate(text) || new Date(time).toISOString().startsWith(text))
  return isReal ? time : null
}
