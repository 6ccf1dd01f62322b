/** The reveal time of a purchase: ISO 8601 as RFC 3339 §5.6 narrows it, seconds optional. */

const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i

/**
 * Unix milliseconds, or null if the text is not a date and time with an offset. Fractions of a
 * millisecond are truncated.
 */
export function parseRevealAt(text: string): number | null {
  const parts = DATE_TIME.exec(text)
  if (!parts) return null
  const number = (part: number): number => Number(parts[part] ?? 0)
  const [year, month, day] = [number(1), number(2), number(3)]
  const milliseconds = Number((parts[7] ?? '').padEnd(3, '0').slice(0, 3))
  const date = new Date(0)
  // Not Date.UTC, which reads the years 0 to 99 as 1900 to 1999.
  date.setUTCFullYear(year, month - 1, day)
  // An invalid day, such as 31 April, has overflowed into the next month.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null
  date.setUTCHours(number(4), number(5), number(6), milliseconds)
  const offsetMinutes = (parts[8] === '-' ? -1 : 1) * (number(9) * 60 + number(10))
  return date.getTime() - offsetMinutes * 60_000
}
