import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyRing } from '../../src/gate-middleware/service.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const TOO_EARLY = /before the receipt came/
const OLD = { kid: 'old', x: 'a' }
const NEW = { kid: 'new', x: 'b' }

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

test('keys that were fetched after the receipt came are enough, and many receipts share one fetch', async () => {
  const { ring, world } = aRing()
  const cameAt = world.now
  world.now += 1
  await ring.keys()
  assert.deepEqual(await ring.keysAfter(cameAt), [OLD])
  assert.equal(world.asked, 1)
  world.now += 10 * SECOND
  world.keys = [NEW, OLD]
  const all = await Promise.all(Array.from({ length: 20 }, () => ring.keysAfter(world.now)))
  for (const keys of all) assert.deepEqual(keys, [NEW, OLD])
  assert.equal(world.asked, 2)
})

for (const seconds of [1, 11]) {
  test(`a fetch that was under way for ${seconds} seconds when the receipt came may lack its key, so it is not enough`, async () => {
    const { ring, world } = aRing()
    const answers = Promise.withResolvers<void>()
    world.answers = answers.promise
    const before = ring.keys()
    world.now += seconds * SECOND
    const after = assert.rejects(ring.keysAfter(world.now), TOO_EARLY)
    answers.resolve()
    assert.deepEqual(await before, [OLD])
    await after
    world.now += 10 * SECOND
    assert.deepEqual(await ring.keysAfter(world.now), [OLD])
    assert.equal(world.asked, 2)
  })
}

test('while the service is away, nobody knows whether a key that is not among them is a new one', async () => {
  const { ring, world } = aRing()
  await ring.keys()
  world.isAway = true
  world.now += 10 * SECOND
  await assert.rejects(ring.keysAfter(world.now), /away/)
  assert.deepEqual(await ring.keys(), [OLD])
  world.isAway = false
  world.now += 10 * SECOND
  assert.deepEqual(await ring.keysAfter(world.now), [OLD])
})

test('the keys of receipts stay valid for a day while the service is away', async () => {
  const { ring, world } = aRing()
  await ring.keys()
  world.isAway = true
  world.now += 23 * HOUR
  for (let i = 0; i < 3; i++) assert.deepEqual(await ring.keys(), [OLD])
  assert.equal(world.asked, 2, 'once in ten seconds')
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

function aRing() {
  const world = { now: 0, asked: 0, isAway: false, keys: [OLD], answers: Promise.resolve() }
  const ring = createKeyRing(
    async () => {
      world.asked++
      await world.answers
      if (world.isAway) throw new Error('the service is away')
      return world.keys
    },
    () => world.now,
  )
  return { ring, world }
}
