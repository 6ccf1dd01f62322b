/** The one source of time. Tests hand in their own; nothing else reads the wall clock. */
export type Clock = {
  /** Unix milliseconds. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** RFC 3339 UTC with milliseconds: `2026-01-02T03:04:05.678Z`. */
export const rfc3339 = (unixMs: number): string => new Date(unixMs).toISOString()

/** RFC 3339 UTC of a whole second, as challenges and invoices spell it: `2026-01-02T03:04:05Z`. */
export const rfc3339Seconds = (unixMs: number): string =>
  `${new Date(unixMs).toISOString().slice(0, 19)}Z`
