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
