/** What an instance says and does while the store cannot share its limits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSharedLimits } from '../../src/http/shared-limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { until } from '../support/until.ts'

test('an instance that counts alone says so once, counts on, and says when it shares again', async (t) => {
  let isAway = true
  let asked = 0
  const said: string[] = []
  const limits = createSharedLimits({
    db: {
      async write() {
        asked++
        if (isAway) throw new Error('gone')
        return { rows: [] } as never
      },
    },
    clock: systemClock,
    secret: new Uint8Array(32),
    onAway: (reason) => said.push(reason),
    onBack: () => said.push('back'),
  })
  t.after(() => limits.close())
  const take = limits.openBucket({ name: 'poll', perMinute: 1, burst: 4 })
  for (const times of [1, 2]) {
    await take('order')
    await until(`it has tried ${times} times`, () => asked >= times)
  }
  isAway = false
  await take('order')
  await until('it shares', () => said.includes('back'))
  await take('order')
  assert.equal((await take('order')).isRefused, true)
  await until('it has shared again', () => asked >= 4)
  assert.deepEqual(said, ['gone', 'back'])
})

for (const [when, isSharing] of [
  ['before it shares', false],
  ['while it shares', true],
] as const) {
  test(`an instance that stops ${when} asks the store no more`, async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let asked = 0
    const limits = createSharedLimits({
      db: {
        async write() {
          asked++
          return { rows: [] } as never
        },
      },
      clock: systemClock,
      secret: new Uint8Array(32),
      onAway: (reason) => assert.fail(reason),
      onBack: () => assert.fail('it was never away'),
    })
    const take = limits.openBucket({ name: 'poll', perMinute: 1, burst: 4 })
    take('order')
    if (isSharing) t.mock.timers.tick(100)
    take('another order')
    limits.close()
    await new Promise(setImmediate)
    t.mock.timers.tick(100)
    assert.equal(asked, isSharing ? 1 : 0)
  })
}
