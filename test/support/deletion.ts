/** Deletion in tests of a part: by the test's own clock, which nobody doubts. */
import type { DeletionClock } from '../../src/db/deletion-clock.ts'
import { type Clock, type DeletionTime, NOTHING_IS_OVER } from '../../src/lib/clock.ts'

/** What the deletion clock would say at this time. */
export const overBy = (unixMs: number): DeletionTime => unixMs as DeletionTime

/** Believes the clock, until the test says that it is held. */
export function believing(clock: Clock): DeletionClock & { hold(isHeld: boolean): void } {
  let held = false
  const atOnce = (): DeletionTime => (held ? NOTHING_IS_OVER : overBy(clock.now()))
  return {
    now: async () => atOnce(),
    atOnce,
    isHeld: () => held,
    beat: async () => undefined,
    close: async () => undefined,
    hold(isHeld) {
      held = isHeld
    },
  }
}
