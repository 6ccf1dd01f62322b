/** The one source of time. Tests hand in their own; nothing else reads the wall clock. */
export type Clock = {
  /** Unix milliseconds. */
  now(): number
}

/** A clock that also counts the time that has really passed, which no hand can set. */
export type SteadyClock = Clock & {
  /** Milliseconds since some moment; never goes back, and never jumps. */
  monotonic(): number
}

export const systemClock: SteadyClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}

/**
 * A time by which things may be deleted for being over. Only the deletion clock makes one
 * (`db/deletion-clock.ts`), so that no clock that has jumped deletes anything.
 */
export type DeletionTime = number & { readonly madeBy: 'the deletion clock' }

/** Where that time comes from. */
export type Deletion = {
  /** The time by which what is over may be deleted: NOTHING_IS_OVER while the clock is doubted. */
  now(): Promise<DeletionTime>
  /** The same without asking the store; NOTHING_IS_OVER where it was last asked too long ago. */
  atOnce(): DeletionTime
}

/** Nothing is over by then. */
export const NOTHING_IS_OVER = 0 as DeletionTime

/** So long before: what was over by then is over by `time`, too. */
export const before = (time: DeletionTime, ms: number): DeletionTime => {
  if (ms < 0) throw new RangeError('what is over later is not over yet')
  return (time - ms) as DeletionTime
}

/** RFC 3339 UTC with milliseconds: `2026-01-02T03:04:05.678Z`. */
export const rfc3339 = (unixMs: number): string => new Date(unixMs).toISOString()

/** RFC 3339 UTC of a whole second, as challenges and invoices spell it: `2026-01-02T03:04:05Z`. */
export const rfc3339Seconds = (unixMs: number): string =>
  `${new Date(unixMs).toISOString().slice(0, 19)}Z`
