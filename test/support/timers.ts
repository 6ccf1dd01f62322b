/** Timers that a test controls. */
import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import type { TestContext } from 'node:test'

/** How long a test waits in real time for a condition. */
const WITHIN_MS = 60_000

/** Lets the test end the watcher's pauses. Do not use `until` then: it pauses too and would wait for ever. */
export function ownedTimers(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  syncBuiltinESMExports()
  const release = (): void => {
    t.mock.timers.reset()
    syncBuiltinESMExports()
  }
  t.after(release)

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
    /** The timers are real again. */
    release,
    /** Ends the watcher's pauses one after the other, until this is true. */
    sweeps: (effect: () => unknown) => turnsUntil(effect, () => t.mock.timers.tick(15_000)),
    /** Waits until this is true, without ending a pause. */
    noSweep: (effect: () => unknown) => turnsUntil(effect, () => {}),
  }
}
