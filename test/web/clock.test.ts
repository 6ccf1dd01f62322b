import assert from 'node:assert/strict'
import { test } from 'node:test'

const NOON = Date.parse('2026-11-28T12:00:00Z')
const DAY_MS = 24 * 3_600_000

test('a page follows the clock of the service at once, and believes its own again when that was set right', async (t) => {
  t.mock.timers.enable({ apis: ['Date', 'setInterval'], now: NOON + 3 * DAY_MS })
  Object.defineProperty(globalThis, 'location', {
    value: { origin: 'http://localhost' },
    configurable: true,
  })
  t.after(() => Reflect.deleteProperty(globalThis, 'location'))
  const { clock, now, secondsUntil } = await import('../../src/web/lib/service.ts')
  clock.answered(new Date(NOON).toUTCString())
  assert.equal(clock.now(), NOON)
  // What is drawn waits for no tick: a countdown of 30 seconds would say three days.
  assert.equal(now.value, NOON)
  assert.equal(secondsUntil(NOON + 30_000), 30)
  t.mock.timers.setTime(NOON + 60_000)
  clock.answered(new Date(NOON + 60_000).toUTCString())
  assert.equal(clock.now(), NOON + 60_000)
  assert.equal(now.value, NOON + 60_000)
  // An answer without a date says nothing of the time.
  clock.answered(null)
  assert.equal(clock.now(), NOON + 60_000)
})
