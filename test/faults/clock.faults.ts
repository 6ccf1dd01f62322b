import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { openStore } from '../../src/db/open.ts'
import { audit, settledBySimulator } from '../support/accounting.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { startLoad } from './load.ts'

const HOUR = 3_600_000
const JUMPS = [HOUR, -HOUR, -20 * 60_000, 40 * 60_000, -20 * 60_000]
const PROMISES = 60

suite('the clock jumps under mixed load', { timeout: 600_000 }, () => {
  test('forwards beyond every quote and backwards again, nobody pays for nothing', async (t) => {
    const server = await startServer(t)
    const load = startLoad(() => [server.url])
    t.after(load.abandon)
    const progress = (): Promise<true> => {
      const enough = load.acknowledged() + PROMISES
      return until('more promises', () => load.acknowledged() >= enough || null).then(() => true)
    }
    await progress()
    for (const jump of JUMPS) {
      server.clock.advance(jump)
      await progress()
    }
    await load.stop()
    await server.stop()
    const db = await openStore({ kind: 'sqlite', file: server.file })
    t.after(db.close)
    assert.deepEqual(load.surprises, [])
    assert.deepEqual(
      await audit({ db, settled: await settledBySimulator(db), told: load.told }),
      [],
    )
  })
})
