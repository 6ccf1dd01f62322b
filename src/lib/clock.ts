/** A source of time. Tests hand in their own; nothing else reads the wall clock. */
export type Clock = {
  /** Unix milliseconds. */
  now(): number
}

/** A clock that also measures elapsed time, which nobody can set. */
export type SteadyClock = Clock & {
  /** Milliseconds since a fixed moment. Never jumps. */
  monotonic(): number
}

export const systemClock: SteadyClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}

/** A clock that knows when it cannot be relied on. */
export type HeldClock = Clock & {
  /** After a jump or a gap: nothing final may happen now, such as deleting, sealing by age, or revealing. */
  isHeld(): boolean
  /** After a step back: no invoice is made and nothing is settled now. */
  hasGoneBack(): boolean
}

/** RFC 3339 UTC with milliseconds: `2026-01-02T03:04:05.678Z`. */
export const rfc3339 = (unixMs: number): string => new Date(unixMs).toISOString()

/** RFC 3339 UTC of a whole second, as challenges and invoices spell it: `2026-01-02T03:04:05Z`. */
export const rfc3339Seconds = (unixMs: number): string =>
  `${new Date(unixMs).toISOString().slice(0, 19)}Z`
