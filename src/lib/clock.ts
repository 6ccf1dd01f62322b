/** The one source of time. Tests hand in their own; nothing else reads the wall clock. */
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

/**
 * Things that ended before this time may be deleted. Only the deletion clock (`db/deletion-clock.ts`) makes
 * such a time, so that a clock that has jumped deletes nothing.
 */
export type DeletionTime = number & { readonly madeBy: 'the deletion clock' }

/** The source of that time. */
export type Deletion = {
  /** The current deletion time; NOTHING_IS_OVER while the clock is in doubt. */
  now(): Promise<DeletionTime>
  /** The same without asking the store. Also NOTHING_IS_OVER if the store was last asked too long ago. */
  atOnce(): DeletionTime
}

/** Nothing ended before this time. */
export const NOTHING_IS_OVER = 0 as DeletionTime

/** `ms` before a deletion time: what ended before that also ended before `time`. */
export const before = (time: DeletionTime, ms: number): DeletionTime => {
  if (ms < 0) throw new RangeError('a later time than the deletion time')
  return (time - ms) as DeletionTime
}

/** RFC 3339 UTC with milliseconds: `2026-01-02T03:04:05.678Z`. */
export const rfc3339 = (unixMs: number): string => new Date(unixMs).toISOString()

/** RFC 3339 UTC of a whole second, as challenges and invoices spell it: `2026-01-02T03:04:05Z`. */
export const rfc3339Seconds = (unixMs: number): string =>
  `${new Date(unixMs).toISOString().slice(0, 19)}Z`
