/** The reveal time of a purchase: ISO 8601 as RFC 3339 §5.6 narrows it, seconds optional. */

const DATE_TIME =
  /^(\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]))T([01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/**
 * Unix milliseconds, or null if the text is not a date and time with an offset. Fractions of a
 * millisecond are truncated.
 */
export function parseRevealAt(text: string): number | null {
  const upper = text.toUpperCase()
  const [, day] = DATE_TIME.exec(upper) ?? []
  // A day that its month lacks, such as 31 April, would be read as one of the next month.
  if (day === undefined || !new Date(`${day}T00:00Z`).toISOString().startsWith(day)) return null
  return Date.parse(upper)
}
