/**
 * The clocks of machines. Each is off by up to a bound, drifts, and is corrected by NTP, also by steps back. Jumps
 * beyond that are the scheduler's.
 */
import { createRandom, type Random } from '../../support/random.ts'

/** @returns how many milliseconds the clock is ahead of the right time, after this time of the run. */
export type MachineClock = (elapsedMs: number) => number

/** Faster than a clock drifts and than NTP slews it, so that it shows within a run. */
const MAX_DRIFT = 1 / 1000
/** NTP steps a clock that is further off than this, and slews the others. */
const STEPPED_MS = 128
const LONGEST_SPELL_MS = 60_000

export function createMachineClock(of: Random, withinMs: number): MachineClock {
  const random = createRandom(of.int(0, 2 ** 31))
  const anyOffset = (): number => (2 * random.next() - 1) * withinMs
  let spell = { beganAt: 0, endsAt: 0, ahead: anyOffset(), drift: 0 }

  const aheadAt = (elapsedMs: number): number => {
    const ahead = spell.ahead + (elapsedMs - spell.beganAt) * spell.drift
    return Math.max(-withinMs, Math.min(withinMs, ahead))
  }

  return (elapsedMs) => {
    while (elapsedMs >= spell.endsAt) {
      const before = aheadAt(spell.endsAt)
      // A step may go beyond the right time, as one that is measured over a slow network does.
      const isStepped = Math.abs(before) > STEPPED_MS && random.chance(0.5)
      spell = {
        beganAt: spell.endsAt,
        endsAt: spell.endsAt + random.next() * LONGEST_SPELL_MS,
        ahead: isStepped ? anyOffset() : before,
        drift: (2 * random.next() - 1) * MAX_DRIFT,
      }
    }
    return aheadAt(elapsedMs)
  }
}
