import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { MAX_HOLD_MS } from '../../src/db/clock.ts'
import { openStore } from '../../src/db/open.ts'
import { audit, settledBySimulator } from '../support/accounting.ts'
import { live } from '../support/pulse.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { startLoad } from './load.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const YEAR = 365 * DAY
/** There and back each; what is sold while the clock is behind would be over when it is right. */
const JUMPS = [
  ...[HOUR, -HOUR, -20 * 60_000, 40 * 60_000, -20 * 60_000],
  ...[2 * DAY, -2 * DAY, 40 * DAY, -40 * DAY],
  ...[YEAR, 20 * YEAR, -21 * YEAR],
]
const PROMISES = 60
/** The intervals of purges and beats, and more. */
const PURGE = 31_000

suite('the clock jumps under mixed load', { timeout: 600_000 }, () => {
  test('nobody pays for nothing, and nothing is deleted, when the clock jumps by hours, days and years, there and back', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const server = await startServer(t)
    const load = startLoad(() => [server.url], { clockJumps: true })
    t.after(load.abandon)
    const progress = (): Promise<true> => {
      const enough = load.acknowledged() + PROMISES
      return until('more promises', () => load.acknowledged() >= enough || null).then(() => true)
    }
    await progress()
    for (const jump of JUMPS) {
      server.clock.jump(jump)
      t.mock.timers.tick(PURGE)
      // Nothing is sold until the hold is over.
      if (jump < 0) await live(server, MAX_HOLD_MS)
      await progress()
    }
    // A client may wait for the next look at the node, which is on a timer that the test moves.
    let isOver = false
    const stopped = load.stop().finally(() => {
      isOver = true
    })
    await until('the clients have got what they paid for', () => {
      t.mock.timers.tick(1_000)
      return isOver
    })
    await stopped
    await server.stop()
    const db = await openStore({ kind: 'sqlite', file: server.file })
    t.after(db.close)
    assert.deepEqual(load.surprises, [])
    assert.deepEqual(
      await audit({ db, settled: await settledBySimulator(db), told: load.told }),
      [],
    )
    assert.ok(!server.logged.some((line) => line.includes('"event":"product.purged"')))
  })
})
