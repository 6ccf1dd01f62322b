import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createKeyRing } from '../../src/gate-middleware/keys.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const OLD = { kid: 'old', x: 'a' }
const NEW = { kid: 'new', x: 'b' }

describe('the keys of receipts', () => {
  test('the keys of receipts are asked for once, however many need them, and kept for five minutes', async () => {
    const { ring, world } = aRing()
    const all = await Promise.all(Array.from({ length: 20 }, () => ring.keys()))
    for (const keys of all) assert.deepEqual(keys, [OLD])
    assert.equal(world.asked, 1)
    world.now += 300 * SECOND
    await ring.keys()
    assert.equal(world.asked, 1)
    world.now += 1
    await ring.keys()
    assert.equal(world.asked, 2)
  })

  test('the keys of receipts are renewed for a key that is not among them, every ten seconds at most', async () => {
    const { ring, world } = aRing()
    await ring.keys()
    world.keys = [NEW, OLD]
    assert.deepEqual(await ring.keys('renewed'), [OLD])
    world.now += 10 * SECOND
    assert.deepEqual(await ring.keys(), [OLD])
    assert.deepEqual(await ring.keys('renewed'), [NEW, OLD])
    await ring.keys('renewed')
    assert.equal(world.asked, 2)
  })

  test('the keys of receipts stay valid for a day while the service is away', async () => {
    const { ring, world } = aRing()
    await ring.keys()
    world.isAway = true
    world.now += 23 * HOUR
    assert.deepEqual(await ring.keys(), [OLD])
    world.now += 2 * HOUR
    await assert.rejects(ring.keys())
    world.isAway = false
    world.now += 10 * SECOND
    assert.deepEqual(await ring.keys(), [OLD])
  })

  test('keys that were never there are asked for each time', async () => {
    const { ring, world } = aRing()
    world.isAway = true
    await assert.rejects(ring.keys(), /away/)
    world.isAway = false
    assert.deepEqual(await ring.keys(), [OLD])
  })
})

function aRing() {
  const world = { now: 0, asked: 0, isAway: false, keys: [OLD] }
  const ring = createKeyRing(
    async () => {
      world.asked++
      if (world.isAway) throw new Error('the service is away')
      return world.keys
    },
    () => world.now,
  )
  return { ring, world }
}
