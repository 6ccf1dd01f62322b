/** Deletion in tests of one room: by the test's clock, which is always right. */
import type { DeletionClock } from '../../src/db/deletion-clock.ts'
import { type Clock, type DeletionTime, NOTHING_IS_OVER } from '../../src/lib/clock.ts'

/** This time, as the deletion clock returns it. */
export const overBy = (unixMs: number): DeletionTime => unixMs as DeletionTime

/** A deletion clock that follows this clock until the test holds it. */
export function believing(clock: Clock): DeletionClock & { hold(isHeld: boolean): void } {
  let held = false
  const atOnce = (): DeletionTime => (held ? NOTHING_IS_OVER : overBy(clock.now()))
  return {
    now: async () => atOnce(),
    atOnce,
    isHeld: () => held,
    isJumped: () => held,
    beat: async () => undefined,
    close: async () => undefined,
    hold(isHeld) {
      held = isHeld
    },
  }
}
