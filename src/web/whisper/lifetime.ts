/** How long a plan lives, from the words of the catalogue: its number of seconds is not part of the interface. */

const MS: Record<string, number> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 7 * 86_400_000,
}

/** The milliseconds of `24 hours` or `1 week`, or null for any other words: then the service alone knows. */
export function lifetimeMs(label: string): number | null {
  const [, number, unit] = /^(\d{1,6}) (minute|hour|day|week)s?$/i.exec(label.trim()) ?? []
  const size = unit === undefined ? undefined : MS[unit.toLowerCase()]
  return size === undefined ? null : Number(number) * size
}
