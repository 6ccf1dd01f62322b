/** Estimates the time of the service, since this computer's clock may be wrong. */
export type ServerClock = {
  now(): number
  /** Sets the clock by an answer's `Date` header. */
  answered(date: string | null): void
  /** Moves the clock to a time that the service reports as past. */
  passed(iso: string | null): void
}

export function createServerClock(): ServerClock {
  let ahead = 0
  return {
    now: () => Date.now() + ahead,
    answered(date) {
      const at = Date.parse(date ?? '')
      // `Date` has whole seconds, so small differences are ignored.
      if (Math.abs(at - Date.now()) > 2_000) ahead = at - Date.now()
    },
    passed(iso) {
      const at = Date.parse(iso ?? '')
      if (at > Date.now() + ahead) ahead = at - Date.now()
    },
  }
}
