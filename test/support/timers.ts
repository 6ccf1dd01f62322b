/** Timers that a test owns. */
import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import type { TestContext } from 'node:test'

/** How long a test waits, by the clock on the wall, for what has to happen. */
const WITHIN_MS = 60_000

export type OwnedTimers = {
  /** Ends the pauses of the watcher, one after the other, until this holds. */
  sweeps(effect: () => unknown): Promise<void>
  /** Waits until this holds, and ends no pause. */
  noSweep(effect: () => unknown): Promise<void>
}

/** The watcher's pauses end when the test says so. `until` would wait for ever: it pauses, too. */
export function ownedTimers(t: TestContext): OwnedTimers {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.timers.reset()
    syncBuiltinESMExports()
  })

  async function turnsUntil(effect: () => unknown, turn: () => void): Promise<void> {
    const giveUpAt = performance.now() + WITHIN_MS
    for (;;) {
      if (await effect()) return
      assert.ok(performance.now() < giveUpAt, 'what had to happen did not')
      turn()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  return {
    sweeps: (effect) => turnsUntil(effect, () => t.mock.timers.tick(15_000)),
    noSweep: (effect) => turnsUntil(effect, () => {}),
  }
}
