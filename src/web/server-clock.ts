/** The time of the service, as far as a page can know it: this computer's clock may be wrong. */
export type ServerClock = {
  now(): number
  /** Takes the time that an answer was made at. */
  answered(date: string | null): void
  /** Takes a time that the service says has come already. */
  passed(iso: string | null): void
}

export function createServerClock(): ServerClock {
  let ahead = 0
  return {
    now: () => Date.now() + ahead,
    answered(date) {
      const at = Date.parse(date ?? '')
      // It is of whole seconds; less than that is no difference.
      if (Math.abs(at - Date.now()) > 2_000) ahead = at - Date.now()
    },
    passed(iso) {
      const at = Date.parse(iso ?? '')
      if (at > Date.now() + ahead) ahead = at - Date.now()
    },
  }
}
